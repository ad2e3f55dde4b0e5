/** Reads a page of plain text or Markdown: `#` and underlined headings start sections. */
import type { Page, Section } from './page.ts';

const hashHeading = /^(#{1,6})\s+(.{1,200}?)\s*#*$/u;
const underline = /^([=\-~^"])\1{2,}$/u;

export const readText = (text: string, address: string): Page => {
	const sections: Section[] = [];
	let heading = '';
	let level = 0;
	let lines: string[] = [];
	const close = (): void => {
		const body = lines.join('\n').trim();
		if (body !== '' || heading !== '')
			sections.push({ level, heading, above: [], anchor: undefined, text: body, linkShare: 0 });
		lines = [];
	};
	for (const line of text.split(/\r\n?|\n/u)) {
		const found = hashHeading.exec(line);
		const before = lines.at(-1)?.trim() ?? '';
		if (found) {
			close();
			level = found[1]?.length ?? 1;
			heading = found[2] ?? '';
		} else if (before !== '' && before.length < 120 && underline.test(line.trim())) {
			lines.pop();
			close();
			level = 2;
			heading = before;
		} else lines.push(line);
	}
	close();
	const title =
		sections.find((section) => section.heading !== '')?.heading ?? decodeURI(new URL(address).pathname);
	return { title, canonical: undefined, links: [], base: undefined, noIndex: false, hasMain: true, sections };
};
