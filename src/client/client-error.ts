import { type ErrorCode, HoldfastError } from '../errors.ts';

/**
 * Codes that only the client throws, with what they mean. Match on the code, never on the message.
 */
export const CLIENT_ERROR_CODES = {
	TASK_CANCELLED: 'the task was cancelled, by this client or by another',
	TASK_EXPIRED: "the server did not answer until the task's lifetime was over; the outcome is unknown",
	INVALID_RESPONSE: 'the server answered something that the Tasks extension does not allow',
	DETACHED: 'this execution stopped watching; the task lives on and can be resumed by its reference',
	INVALID_REFERENCE: 'the text is not a task reference of holdfast, or one of another server',
	JOURNAL_NEWER: 'the journal was written by a newer version of holdfast',
	JOURNAL_UNUSABLE: 'the journal cannot be opened or is not a holdfast journal',
} as const;

/** A code of {@link CLIENT_ERROR_CODES}. */
export type ClientErrorCode = keyof typeof CLIENT_ERROR_CODES;

/** An error that only the client throws. */
export class ClientError extends Error {
	readonly code: ClientErrorCode;

	constructor(code: ClientErrorCode, message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = 'ClientError';
		this.code = code;
	}
}

/** The error for a code, whichever table it stands in. */
export function clientError(
	code: ErrorCode | ClientErrorCode,
	message: string,
	options?: ErrorOptions,
): HoldfastError | ClientError {
	return isClientCode(code)
		? new ClientError(code, message, options)
		: new HoldfastError(code, message, options);
}

function isClientCode(code: string): code is ClientErrorCode {
	return Object.hasOwn(CLIENT_ERROR_CODES, code);
}
