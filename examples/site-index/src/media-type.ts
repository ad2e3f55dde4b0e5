/** Media types as servers write them, right or wrong. */
import { MIMEType } from 'node:util';

const parse = (contentType: string): MIMEType | undefined => {
	try {
		return new MIMEType(contentType);
	} catch {
		return undefined;
	}
};

/** The type without its parameters. */
export const essenceOf = (contentType: string): string =>
	parse(contentType)?.essence ?? (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();

export const parametersOf = (contentType: string): { get(name: string): string | null | undefined } =>
	parse(contentType)?.params ?? new Map<string, string>();
