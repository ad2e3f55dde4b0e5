import { isJsonObject } from './json.ts';
import { CLIENT_CAPABILITIES_META, TASKS_EXTENSION } from './names.ts';
import type { InputRequest } from './task.ts';

/** What a client said, on one request, that it can be asked for. */
export interface InputCapabilities {
	readonly form: boolean;
	readonly url: boolean;
	readonly sampling: boolean;
	readonly roots: boolean;
}

/** A client that can be asked nothing. */
export const NO_INPUT: InputCapabilities = { form: false, url: false, sampling: false, roots: false };

/** Whether one request's `_meta` declares the Tasks extension (T01, T02). */
export function declaresTasks(meta: unknown): boolean {
	const capabilities = isJsonObject(meta) ? meta[CLIENT_CAPABILITIES_META] : undefined;
	const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : undefined;
	return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]);
}

/**
 * What a client's capabilities allow a server to ask for. An `elicitation` capability without modes means
 * form mode, as it did before modes existed.
 */
export function inputCapabilities(capabilities: unknown): InputCapabilities {
	if (!isJsonObject(capabilities)) return NO_INPUT;
	const elicitation = capabilities['elicitation'];
	const modes = isJsonObject(elicitation) ? elicitation : undefined;
	return {
		form: modes !== undefined && (modes['form'] !== undefined || modes['url'] === undefined),
		url: modes?.['url'] !== undefined,
		sampling: isJsonObject(capabilities['sampling']),
		roots: isJsonObject(capabilities['roots']),
	};
}

/** Whether a client with these capabilities may be sent this request. */
export function canAsk(capabilities: InputCapabilities, request: InputRequest): boolean {
	if (request.method === 'sampling/createMessage') return capabilities.sampling;
	if (request.method === 'roots/list') return capabilities.roots;
	return request.params?.['mode'] === 'url' ? capabilities.url : capabilities.form;
}
