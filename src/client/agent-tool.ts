import type { JsonObject } from '../protocol/json.ts';

/** The JSON Schema of a function's arguments. */
export type FunctionSchema = {
	readonly type: 'object';
	readonly properties: JsonObject;
	readonly [keyword: string]: unknown;
};

/** A tool as a model is told of it. */
export interface AgentTool {
	/** A legal name of a function: letters, digits, `_` and `-`, at most 64. */
	readonly name: string;
	readonly description: string;
	readonly inputSchema: FunctionSchema;
}

/** A call as a model makes it. */
export interface AgentCall {
	/** The provider's id of the call. A second call with the id, name and arguments of an earlier one is that one. */
	readonly id: string;
	readonly name: string;
	/** A JSON object. */
	readonly arguments: unknown;
	/** Stops waiting for the answer. */
	readonly signal?: AbortSignal | undefined;
}
