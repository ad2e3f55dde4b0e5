/** Porter's stemming as SQLite's tokenizer does it, to look a word up among the stems of the search index. */

const consonant = '(?:[^aeiouy]|(?<![^aeiou])y|^y)';
const vowel = '(?:[aeiou]|(?<=[^aeiou])y)';
const measureAtLeast = (count: number): RegExp =>
	new RegExp(`^(?:${consonant})*(?:${vowel}+${consonant}+){${count}}`, 'u');
const measured = measureAtLeast(1);
const measuredTwice = measureAtLeast(2);
const hasVowel = new RegExp(vowel, 'u');
const doubleConsonant = /([^aeiouylsz])\1$/u;
const shortEnd = new RegExp(`^.*${consonant}${vowel}[^aeiouwxy]$`, 'u');

const step2: readonly (readonly [string, string])[] = [
	...([
		['ational', 'ate'],
		['tional', 'tion'],
		['enci', 'ence'],
		['anci', 'ance'],
		['izer', 'ize'],
	] as const),
	...([
		['logi', 'log'],
		['bli', 'ble'],
		['alli', 'al'],
		['entli', 'ent'],
		['eli', 'e'],
		['ousli', 'ous'],
	] as const),
	...([
		['ization', 'ize'],
		['ation', 'ate'],
		['ator', 'ate'],
		['alism', 'al'],
		['iveness', 'ive'],
	] as const),
	...([
		['fulness', 'ful'],
		['ousness', 'ous'],
		['aliti', 'al'],
		['iviti', 'ive'],
		['biliti', 'ble'],
	] as const),
];
const step3: readonly (readonly [string, string])[] = [
	...([
		['icate', 'ic'],
		['ative', ''],
		['alize', 'al'],
		['iciti', 'ic'],
		['ical', 'ic'],
		['ful', ''],
		['ness', ''],
	] as const),
];
const step4 = [
	...[
		'al',
		'ance',
		'ence',
		'er',
		'ic',
		'able',
		'ible',
		'ant',
		'ement',
		'ment',
		'ent',
		'ion',
		'ou',
		'ism',
		'ate',
	],
	...['iti', 'ous', 'ive', 'ize'],
].sort((a, b) => b.length - a.length);

export const stem = (word: string): string => {
	// Counted in bytes, as the tokenizer does; any letter that is no English vowel is a consonant to it.
	const bytes = Buffer.byteLength(word);
	if (bytes < 3 || bytes > 64) return word;
	return last(fourth(replaceEnd(replaceEnd(first(word), step2), step3)));
};

const first = (word: string): string => {
	let at = word;
	if (/(ss|i)es$/u.test(at)) at = at.slice(0, -2);
	else if (/[^s]s$/u.test(at)) at = at.slice(0, -1);
	if (at.endsWith('eed')) {
		if (measured.test(at.slice(0, -3))) at = at.slice(0, -1);
	} else {
		const end = at.endsWith('ed') ? 2 : at.endsWith('ing') ? 3 : 0;
		const root = at.slice(0, at.length - end);
		if (end > 0 && hasVowel.test(root)) {
			if (/(at|bl|iz)$/u.test(root)) at = `${root}e`;
			else if (doubleConsonant.test(root)) at = root.slice(0, -1);
			else if (measured.test(root) && !measuredTwice.test(root) && shortEnd.test(root)) at = `${root}e`;
			else at = root;
		}
	}
	return at.endsWith('y') && hasVowel.test(at.slice(0, -1)) ? `${at.slice(0, -1)}i` : at;
};

const replaceEnd = (word: string, ends: readonly (readonly [string, string])[]): string => {
	const found = ends.find(([end]) => word.endsWith(end));
	if (found === undefined) return word;
	const root = word.slice(0, -found[0].length);
	return measured.test(root) ? root + found[1] : word;
};

const fourth = (word: string): string => {
	const end = step4.find((one) => word.endsWith(one));
	if (end === undefined) return word;
	const root = word.slice(0, -end.length);
	return measuredTwice.test(root) && (end !== 'ion' || /[st]$/u.test(root)) ? root : word;
};

const last = (word: string): string => {
	let at = word;
	if (at.endsWith('e')) {
		const root = at.slice(0, -1);
		if (measuredTwice.test(root) || (measured.test(root) && !shortEnd.test(root))) at = root;
	}
	return at.endsWith('ll') && measuredTwice.test(at) ? at.slice(0, -1) : at;
};
