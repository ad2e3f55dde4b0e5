/** Turns the bytes of a page into text, whatever the page claims to be written in. */
import { isAscii, isUtf8 } from 'node:buffer';
import { parametersOf } from './media-type.ts';

const headBytes = 2_048;
// Texts in these are made of ASCII bytes or zero bytes: that the bytes happen to be valid UTF-8 says nothing.
const sevenBit = /^(utf-?16|ucs-?2|iso-2022|csiso2022|unicode)/iu;

export const declaredCharset = (contentType: string | undefined, bytes: Uint8Array): string | undefined => {
	const fromHeader = contentType === undefined ? undefined : parametersOf(contentType).get('charset');
	if (fromHeader) return fromHeader;
	const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, headBytes)).toString(
		'latin1',
	);
	const found =
		/<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w:.-]{1,40})|<\?xml[^>]{0,100}?encoding=["']([\w:.-]{1,40})/iu.exec(
			head,
		);
	const fromPage = found?.[1] ?? found?.[2];
	// A page that could be read this far cannot be in UTF-16, whatever it says.
	return fromPage !== undefined && /^utf-?16/iu.test(fromPage) ? 'utf-8' : fromPage;
};

export const decodePage = (bytes: Uint8Array, contentType?: string): string => {
	const [a, b, c] = bytes;
	if (a === 0xff && b === 0xfe) return decodeAs('utf-16le', bytes);
	if (a === 0xfe && b === 0xff) return decodeAs('utf-16be', bytes);
	if (a === 0xef && b === 0xbb && c === 0xbf) return decodeAs('utf-8', bytes);
	const declared = declaredCharset(contentType, bytes);
	if (declared === undefined || !sevenBit.test(declared)) {
		if (isAscii(bytes))
			return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
		// Text in another encoding is hardly ever valid UTF-8 by chance, so this outweighs what is declared.
		if (isUtf8(bytes)) return decodeAs('utf-8', bytes);
	}
	if (declared !== undefined && !/^utf-?8$/iu.test(declared)) {
		const decoder = decoderFor(declared);
		if (decoder !== undefined) return decoder.decode(bytes);
	}
	return decodeBroken(bytes);
};

/** UTF-8 with a few broken places stays UTF-8; a page that is broken all over was never UTF-8. */
const decodeBroken = (bytes: Uint8Array): string => {
	const text = decodeAs('utf-8', bytes);
	let broken = 0;
	let whole = 0;
	for (let at = 0; at < text.length; at += 1) {
		const code = text.charCodeAt(at);
		if (code === 0xfffd) broken += 1;
		else if (code > 0x7f) whole += 1;
	}
	return broken > whole ? decodeAs('windows-1252', bytes) : text;
};

const decodeAs = (label: string, bytes: Uint8Array): string => new TextDecoder(label).decode(bytes);

const decoderFor = (label: string): InstanceType<typeof TextDecoder> | undefined => {
	try {
		return new TextDecoder(label);
	} catch {
		return undefined;
	}
};
