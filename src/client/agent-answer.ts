import type { AnswerPart } from './answer-parts.ts';

/** What a model is given for a call. JSON. */
export interface AgentAnswer {
	readonly parts: readonly AnswerPart[];
	/** Whether it is about something that went wrong. */
	readonly isError: boolean;
}

/** Said before what a tool returned where an API leaves only the user's role for it. */
export const NOT_THE_USER = '[This is about a tool call of yours, and not from the user]';

/** An answer of one text. */
export function textAnswer(text: string): AgentAnswer {
	return { parts: [{ type: 'text', text }], isError: false };
}

/** An answer about something that went wrong. */
export function errorAnswer(text: string): AgentAnswer {
	return { parts: [{ type: 'text', text }], isError: true };
}
