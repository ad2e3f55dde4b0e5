import { spawn } from 'node:child_process';

/** Opens a page in the person's browser. Nothing is thrown: the person sees the address and can open it. */
export function openPage(page: URL): Promise<void> {
	const [command, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
	return new Promise((resolve) => {
		const opener = spawn(command, [...args, page.href], { detached: true, stdio: 'ignore' });
		opener.once('error', () => resolve());
		opener.once('spawn', () => resolve());
		opener.unref();
	});
}

/** No shell is between: an address may have anything in it. */
const OPENERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
	darwin: ['open'],
	win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};
