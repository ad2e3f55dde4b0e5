/** Web addresses as the index compares them: one spelling for every address of the same page. */

const trackingParameter =
	/^(utm_[a-z]+|fbclid|gclid|msclkid|mc_[ce]id|_ga|phpsessid|jsessionid|aspsessionid[a-z]*|sid|sessionid|session_id|session|sess|zenid|cfid|cftoken)$/iu;
const sessionInPath = /;(jsessionid|phpsessid|sid|sessionid)=[^/?#;]*/giu;
const longestAddress = 2_000;

/** The one spelling of an address, or nothing when it is not an address of a web page. */
export const normalAddress = (raw: string, base?: string): string | undefined => {
	const trimmed = raw.trim();
	if (trimmed.length > longestAddress) return undefined;
	const url = URL.parse(trimmed, base);
	if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
	url.hash = '';
	url.username = '';
	url.password = '';
	if (url.hostname.endsWith('.')) url.hostname = url.hostname.replace(/\.+$/u, '');
	if (url.pathname.includes(';')) url.pathname = url.pathname.replace(sessionInPath, '');
	if (url.pathname.includes('//')) url.pathname = url.pathname.replace(/\/{2,}/gu, '/');
	if (url.search !== '') url.search = tidyQuery(url.search);
	else if (url.href.endsWith('?')) url.search = '';
	return url.href.length > longestAddress ? undefined : url.href;
};

// Kept as written where nothing has to go: some sites read their query by position, so it is never sorted.
const tidyQuery = (search: string): string =>
	search
		.slice(1)
		.split('&')
		.filter((pair) => pair !== '' && !trackingParameter.test(pair.split('=', 1)[0] ?? ''))
		.join('&');

export const originOf = (address: string): string => new URL(address).origin;

const binaryEnding = new RegExp(
	`\\.(${[
		'png|jpe?g|gif|webp|avif|ico|bmp|tiff?|svgz?|css|m?js|map|json|woff2?|ttf|otf|eot|wasm',
		'zip|gz|tgz|bz2|xz|zst|7z|rar|tar|jar|war|deb|rpm|dmg|exe|msi|iso|img|bin|apk|whl',
		'mp[34]|m4[av]|og[gav]|webm|avi|mov|wav|flac|pdf|epub|mobi|docx?|xlsx?|pptx?|od[tsp]|ps|inv',
	].join('|')})$`,
	'iu',
);

/** Whether an address by its ending is a file that no words can be read from. */
export const looksBinary = (address: string): boolean => {
	const end = address.indexOf('?');
	return binaryEnding.test(end === -1 ? address : address.slice(0, end));
};
