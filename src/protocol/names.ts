/** The extension's id under `capabilities.extensions` (T01). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** The protocol version that the Tasks extension belongs to. */
export const TASKS_PROTOCOL_VERSION = '2026-07-28';

/** `_meta` key of the per-request client capabilities on 2026-07-28 (T01). */
export const CLIENT_CAPABILITIES_META = 'io.modelcontextprotocol/clientCapabilities';

/** `_meta` key of the per-request protocol version on 2026-07-28. */
export const PROTOCOL_VERSION_META = 'io.modelcontextprotocol/protocolVersion';

/** `_meta` key of the per-request client name and version on 2026-07-28. */
export const CLIENT_INFO_META = 'io.modelcontextprotocol/clientInfo';

/** `_meta` key that ties a notification to the `subscriptions/listen` it answers (T50). */
export const SUBSCRIPTION_ID_META = 'io.modelcontextprotocol/subscriptionId';

/**
 * `_meta` key of a `tools/call` that makes it idempotent. The same key with the same tool and arguments
 * joins the task that the first call started; with other arguments it is refused.
 * Not part of MCP: holdfast's own.
 */
export const IDEMPOTENCY_KEY_META = 'holdfast/idempotencyKey';

/** The three methods of the extension. */
export type TaskMethod = 'tasks/get' | 'tasks/update' | 'tasks/cancel';

/** JSON-RPC error codes that holdfast sends. */
export const WIRE_CODES = {
	parseError: -32700,
	invalidRequest: -32600,
	invalidParams: -32602,
	methodNotFound: -32601,
	internalError: -32603,
	headerMismatch: -32020,
	missingClientCapability: -32021,
} as const;

/** Longest task id that is looked at; anything longer is answered as unknown (T14, T23). */
export const MAX_TASK_ID_LENGTH = 128;
