export { HoldfastError, isHoldfastError } from '../errors.ts';
export type { AgentAnswer } from './agent-answer.ts';
export type { AgentCall, AgentTool, FunctionSchema } from './agent-tool.ts';
export { AgentTools, type AgentToolsOptions } from './agent-tools.ts';
export {
	aiSdkEndMessage,
	type AiSdkCallOptions,
	type AiSdkOutput,
	type AiSdkPart,
	type AiSdkTool,
	aiSdkTools,
	type AiSdkUserMessage,
} from './ai-sdk-tools.ts';
export { AnswerLater } from './answer-later.ts';
export type { AnswerPart } from './answer-parts.ts';
export {
	type BackgroundAwait,
	type BackgroundEnd,
	type BackgroundStart,
	BackgroundTasks,
	type BackgroundTasksOptions,
	type LeavePolicy,
} from './background-tasks.ts';
export type { CallRoute, RouteKind } from './call-route.ts';
export type { Clock } from './clock.ts';
export { EndInbox } from './end-inbox.ts';
export { Execution, type ResultOptions } from './execution.ts';
export { fileJournal } from './journal/file-journal.ts';
export type { Journal, JournalEntry, JournalledAnswer, QuestionClaim, TaskKey } from './journal/journal.ts';
export { memoryJournal } from './journal/memory-journal.ts';
export {
	type OpenAiTool,
	type OpenAiToolCall,
	type OpenAiToolMessage,
	OpenAiTools,
	type OpenAiToolsOptions,
	type OpenAiUserMessage,
} from './openai-tools.ts';
export type { TaskOutcome } from './outcome.ts';
export { type OpenTask, TaskClient } from './task-client.ts';
export type { InputContext, InputHandler, TaskClientOptions } from './task-client-options.ts';
export { taskFetch } from './task-fetch.ts';
