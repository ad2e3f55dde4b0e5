/** How binding a requirement is. */
export type Level = 'must' | 'should' | 'may';

/** One sentence of the specification, in this project's words. */
export interface Requirement {
	readonly id: string;
	readonly level: Level;
	readonly side: 'server' | 'client' | 'both';
	readonly text: string;
	/** Why no test can cite it yet. */
	readonly deferred?: string;
}

/**
 * The Tasks extension of 2026-07-28 (T) and its forerunner of 2025-11-25 (L) as numbered requirements. Tests
 * cite the ids in their names; the coverage test fails on one that none cites.
 */
export const REQUIREMENTS: readonly Requirement[] = [
	{
		id: 'T01',
		level: 'must',
		side: 'both',
		text: 'The client declares `io.modelcontextprotocol/tasks: {}` under `_meta["io.modelcontextprotocol/clientCapabilities"].extensions` on each request; the server under `capabilities.extensions` in `server/discover`. Advertise exactly `{}`.',
	},
	{
		id: 'T02',
		level: 'must',
		side: 'server',
		text: 'The server never answers with a task to a request that did not declare the extension itself, whatever earlier requests declared.',
	},
	{
		id: 'T03',
		level: 'must',
		side: 'client',
		text: 'The client that declares it accepts either result shape from any supported request; a task result to any other method is an invalid response.',
	},
	{
		id: 'T04',
		level: 'must',
		side: 'server',
		text: 'A tool that cannot answer without a task gives a non-declaring client -32021 with `data.requiredCapabilities.extensions`.',
	},
	{
		id: 'T05',
		level: 'must',
		side: 'server',
		text: 'The server alone decides per request; a `task` parameter on a 2026-07-28 request is ignored.',
	},
	{
		id: 'T06',
		level: 'must',
		side: 'server',
		text: 'Under 2025-11-25 this extension does not apply; under 2026-07-28 the legacy `tasks` capability does not count, and is not advertised.',
	},
	{
		id: 'T10',
		level: 'must',
		side: 'server',
		text: '`CreateTaskResult` is flat: `resultType: "task"` beside `taskId`, `status`, `createdAt`, `lastUpdatedAt`, `ttlMs` (integer ms or null), optional `pollIntervalMs`, `statusMessage`. No nested `task`, no `result`, no `inputRequests`, no stray `content`.',
	},
	{
		id: 'T11',
		level: 'must',
		side: 'server',
		text: 'No other result carries `resultType: "task"`.',
	},
	{
		id: 'T12',
		level: 'must',
		side: 'server',
		text: 'The handle is given only once `tasks/get` for it would resolve, on every replica.',
	},
	{
		id: 'T13',
		level: 'should',
		side: 'server',
		text: 'Multi-round-trip input that is needed to decide whether to start is finished before the task is created; its keys are a separate namespace; the task result carries no `requestState`.',
	},
	{
		id: 'T14',
		level: 'must',
		side: 'server',
		text: 'Task ids are unguessable (128 random bits at least), safe as an HTTP header value, length-capped on input.',
	},
	{
		id: 'T20',
		level: 'must',
		side: 'server',
		text: '`resultType: "complete"`; a pure read; never changes state, never blocks.',
	},
	{
		id: 'T21',
		level: 'must',
		side: 'server',
		text: '`working`: no result, error or inputRequests. `input_required`: all outstanding `inputRequests`. `completed`: `result` exactly as the call would have returned it. `failed`: `error` with the JSON-RPC error, and S a `statusMessage`. `cancelled`: neither.',
	},
	{
		id: 'T22',
		level: 'must',
		side: 'server',
		text: 'A tool result with `isError: true` is `completed`. `failed` is for JSON-RPC errors only.',
	},
	{
		id: 'T23',
		level: 'must',
		side: 'server',
		text: 'Unknown, expired, foreign id: -32602, indistinguishable.',
	},
	{
		id: 'T24',
		level: 'must',
		side: 'server',
		text: 'Terminal states never change. Allowed arcs: working to input_required or terminal; input_required to working or terminal.',
	},
	{
		id: 'T25',
		level: 'may',
		side: 'server',
		text: '`ttlMs` and `pollIntervalMs` may change during life; a task that is running is never purged; past its TTL it may be failed, later deleted.',
	},
	{
		id: 'T30',
		level: 'must',
		side: 'server',
		text: 'Acks with an empty complete result; partial answers are accepted, the task stays `input_required` until all are in.',
	},
	{
		id: 'T31',
		level: 'must',
		side: 'server',
		text: "An input key is never reused for another request within a task's life.",
	},
	{
		id: 'T32',
		level: 'should',
		side: 'server',
		text: 'Unknown, already answered or superseded keys are ignored, with success.',
	},
	{
		id: 'T33',
		level: 'should',
		side: 'server',
		text: 'Unknown task: -32602.',
	},
	{
		id: 'T34',
		level: 'must',
		side: 'client',
		text: 'Each input request is handled by the client like the standalone request (same trust, same UI), once per key across polls, notifications and restarts.',
	},
	{
		id: 'T40',
		level: 'must',
		side: 'server',
		text: 'Empty complete ack; cooperative; idempotent on terminal tasks; the outcome may still be another terminal status if the work got there first.',
	},
	{
		id: 'T41',
		level: 'must',
		side: 'both',
		text: '`notifications/cancelled` never cancels a task. Closing a connection never cancels a task.',
	},
	{
		id: 'T42',
		level: 'should',
		side: 'server',
		text: 'Unknown task: -32602.',
	},
	{
		id: 'T50',
		level: 'may',
		side: 'server',
		text: '`subscriptions/listen` with `notifications.taskIds`; the acknowledgement names the ids that are honoured and comes before anything else on that subscription; each notification carries `io.modelcontextprotocol/subscriptionId`.',
	},
	{
		id: 'T51',
		level: 'must',
		side: 'server',
		text: 'A listen request with `taskIds` from a non-declaring client: -32021.',
	},
	{
		id: 'T52',
		level: 'must',
		side: 'server',
		text: 'Each `notifications/tasks` carries the whole task as `tasks/get` would return it then.',
	},
	{
		id: 'T53',
		level: 'must',
		side: 'server',
		text: 'No `notifications/progress` or `notifications/message` for a task on the listen stream.',
	},
	{
		id: 'T54',
		level: 'must',
		side: 'server',
		text: 'Ids that are unknown or foreign are left out of the acknowledgement.',
	},
	{
		id: 'T55',
		level: 'should',
		side: 'server',
		text: 'A server-side end (shutdown) answers the listen request with a completion result; an abrupt end lets the client reconnect and re-listen.',
	},
	{
		id: 'T60',
		level: 'must',
		side: 'server',
		text: 'Streamable HTTP: `Mcp-Name` equals `params.taskId`, `Mcp-Method` the method, for the three methods; a mismatch is -32020.',
	},
	{
		id: 'T61',
		level: 'must',
		side: 'server',
		text: '`tasks/get`, `tasks/update`, `tasks/cancel` without the declared capability: -32021.',
	},
	{
		id: 'T62',
		level: 'must',
		side: 'server',
		text: '`tasks/result`, `tasks/list` on 2026-07-28: -32601.',
	},
	{
		id: 'T63',
		level: 'must',
		side: 'server',
		text: 'Internal trouble: -32603 with no internals leaked.',
	},
	{
		id: 'T70',
		level: 'should',
		side: 'client',
		text: 'Honours `pollIntervalMs` as a floor, per task, also when it changes; the next poll starts after the last answer; jitter.',
	},
	{
		id: 'T71',
		level: 'should',
		side: 'client',
		text: 'Polls until terminal or until it sends cancel; survives network outages, 5xx, 429 with Retry-After.',
	},
	{
		id: 'T72',
		level: 'should',
		side: 'client',
		text: 'Persists ids so that polling resumes after a crash.',
	},
	{
		id: 'T73',
		level: 'may',
		side: 'client',
		text: 'Treats `ttlMs` as a backstop measured on its own clock from when it first saw the task.',
	},
	{
		id: 'L01',
		level: 'must',
		side: 'both',
		text: 'The receiver advertises `tasks: {list, cancel, requests: {tools: {call: {}}}}` only on that revision, in full form; `execution.taskSupport` on tools.',
	},
	{
		id: 'L02',
		level: 'must',
		side: 'both',
		text: '`params.task` opts in; the answer nests `task` with `ttl`, `pollInterval`; `tasks/get`, `tasks/result` (blocking; carries elicitation and sampling while `input_required`), `tasks/list` (own tasks only, paged), `tasks/cancel`, `notifications/tasks/status`; related-task `_meta`.',
	},
	{
		id: 'L03',
		level: 'must',
		side: 'both',
		text: 'A legacy client that only polls and never calls `tasks/result` still gets its question when it does.',
	},
	{
		id: 'L04',
		level: 'must',
		side: 'both',
		text: 'The requester side calls `tasks/result` on `input_required`.',
	},
];
