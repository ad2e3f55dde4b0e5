/**
 * The fixtures that ask the client for something. Each is written once: on 2026-07-28 the SDK sends
 * the question as an `input_required` result, on 2025 revisions as a request to the client.
 */
import {
	acceptedContent,
	CLIENT_CAPABILITIES_META_KEY,
	type ClientCapabilities,
	type ElicitRequestFormParams,
	type InputRequest,
	inputRequired,
	inputResponse,
	type McpServer,
	type RequestStateCodec,
	type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

type CallResult = { content: { type: 'text'; text: string }[]; isError?: boolean };

const nameSchema = z.object({ name: z.string() });
const colorSchema = z.object({ color: z.string() });
const okSchema = z.object({ ok: z.boolean() });
const contextSchema = z.object({ context: z.string() });

function text(value: string): CallResult {
	return { content: [{ type: 'text', text: value }] };
}

function askName(message = 'What is your name?'): InputRequest {
	return inputRequired.elicit({ message, requestedSchema: nameSchema });
}

function askModel(prompt: string): InputRequest {
	return inputRequired.createMessage({
		messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
		maxTokens: 100,
	});
}

/** The text of a sampling response, or undefined when there is none under `key`. */
function sampledText(ctx: ServerContext, key: string): string | undefined {
	const response = inputResponse(ctx.mcpReq.inputResponses, key);
	if (response.kind !== 'sampling') return undefined;
	const blocks = [response.result.content].flat();
	return blocks.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('');
}

export function registerInputRequired(server: McpServer, codec: RequestStateCodec): void {
	registerSingleQuestions(server);
	registerStatefulQuestions(server, codec);
	registerCapabilityProbes(server);
	registerPushedQuestions(server);

	server.registerPrompt(
		'test_input_required_result_prompt',
		{ description: 'A prompt that first asks for its context' },
		(ctx: ServerContext) => {
			const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_context', contextSchema);
			if (answer === undefined) {
				return inputRequired({
					inputRequests: {
						user_context: inputRequired.elicit({
							message: 'What context should the prompt use?',
							requestedSchema: contextSchema,
						}),
					},
				});
			}
			return { messages: [{ role: 'user', content: { type: 'text', text: `Context: ${answer.context}` } }] };
		},
	);
}

function registerSingleQuestions(server: McpServer): void {
	server.registerTool('test_input_required_result_elicitation', { description: 'Asks for a name' }, (ctx) => {
		const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', nameSchema);
		if (answer === undefined) return inputRequired({ inputRequests: { user_name: askName() } });
		return text(`Hello, ${answer.name}!`);
	});

	server.registerTool('test_input_required_result_sampling', { description: 'Asks the model' }, (ctx) => {
		const answer = sampledText(ctx, 'capital_question');
		if (answer !== undefined) return text(answer);
		return inputRequired({ inputRequests: { capital_question: askModel('What is the capital of France?') } });
	});

	server.registerTool(
		'test_input_required_result_list_roots',
		{ description: 'Asks for the roots' },
		(ctx) => {
			const answer = inputResponse(ctx.mcpReq.inputResponses, 'client_roots');
			if (answer.kind !== 'roots') {
				return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
			}
			return text(`Roots: ${answer.roots.map((root) => root.uri).join(', ')}`);
		},
	);
}

function registerStatefulQuestions(server: McpServer, codec: RequestStateCodec): void {
	const askConfirm = (): InputRequest =>
		inputRequired.elicit({ message: 'Please confirm', requestedSchema: okSchema });

	for (const [name, stage] of [
		['test_input_required_result_request_state', 'confirm'],
		['test_input_required_result_tampered_state', 'untampered'],
	] as const) {
		server.registerTool(
			name,
			{ description: 'Asks for confirmation and checks its own state' },
			async (ctx) => {
				const answer = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', okSchema);
				if (answer === undefined || ctx.mcpReq.requestState() !== stage) {
					return inputRequired({
						inputRequests: { confirm: askConfirm() },
						requestState: await codec.mint(stage, ctx),
					});
				}
				return text('state-ok');
			},
		);
	}

	server.registerTool(
		'test_input_required_result_multiple_inputs',
		{ description: 'Asks the user, the model and for the roots at once' },
		async (ctx) => {
			const name = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', nameSchema);
			const greeting = sampledText(ctx, 'greeting');
			const roots = inputResponse(ctx.mcpReq.inputResponses, 'client_roots');
			if (name === undefined || greeting === undefined || roots.kind !== 'roots') {
				return inputRequired({
					inputRequests: {
						user_name: askName(),
						greeting: askModel('Generate a greeting'),
						client_roots: inputRequired.listRoots(),
					},
					requestState: await codec.mint('multiple', ctx),
				});
			}
			return text(`${greeting} ${name.name}, ${roots.roots.length} root(s)`);
		},
	);

	server.registerTool(
		'test_input_required_result_multi_round',
		{ description: 'Asks two questions, one after the other' },
		async (ctx) => {
			const known = nameSchema.safeParse(ctx.mcpReq.requestState());
			const color = acceptedContent(ctx.mcpReq.inputResponses, 'step2', colorSchema);
			if (known.success && color !== undefined) return text(`${known.data.name} likes ${color.color}`);

			const name = acceptedContent(ctx.mcpReq.inputResponses, 'step1', nameSchema);
			if (name === undefined) {
				return inputRequired({
					inputRequests: { step1: askName('Step 1: What is your name?') },
					requestState: await codec.mint('asked-name', ctx),
				});
			}
			return inputRequired({
				inputRequests: {
					step2: inputRequired.elicit({
						message: 'Step 2: What is your favorite color?',
						requestedSchema: colorSchema,
					}),
				},
				requestState: await codec.mint(name, ctx),
			});
		},
	);
}

function clientCapabilities(server: McpServer, ctx: ServerContext): ClientCapabilities {
	const envelope: Record<string, unknown> = ctx.mcpReq.envelope ?? {};
	const declared = envelope[CLIENT_CAPABILITIES_META_KEY];
	if (typeof declared === 'object' && declared !== null) return declared;
	return server.server.getClientCapabilities() ?? {};
}

function registerCapabilityProbes(server: McpServer): void {
	server.registerTool(
		'test_input_required_result_capabilities',
		{ description: 'Asks only what the client said it can answer' },
		(ctx) => {
			if (Object.keys(ctx.mcpReq.inputResponses ?? {}).length > 0) return text('Answered.');
			const can = clientCapabilities(server, ctx);
			const inputRequests: Record<string, InputRequest> = {};
			if (can.elicitation) inputRequests['user_name'] = askName();
			if (can.sampling) inputRequests['greeting'] = askModel('Generate a greeting');
			if (can.roots) inputRequests['client_roots'] = inputRequired.listRoots();
			if (Object.keys(inputRequests).length === 0) return text('The client can answer nothing.');
			return inputRequired({ inputRequests });
		},
	);

	// The SDK refuses the question with -32021 when the client did not declare sampling.
	server.registerTool('test_missing_capability', { description: 'Needs sampling' }, (ctx) => {
		const answer = sampledText(ctx, 'needs_sampling');
		if (answer !== undefined) return text(answer);
		return inputRequired({ inputRequests: { needs_sampling: askModel('Say anything') } });
	});

	server.registerTool(
		'test_streaming_elicitation',
		{ description: 'Asks without a pushed request' },
		(ctx) => {
			const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', nameSchema);
			if (answer === undefined) return inputRequired({ inputRequests: { user_name: askName() } });
			return text(`Hello, ${answer.name}!`);
		},
	);
}

/** Called only by 2025 scenarios, where the SDK turns the question into a request to the client. */
function registerPushedQuestions(server: McpServer): void {
	server.registerTool(
		'test_sampling',
		{ description: 'Passes a prompt to the model', inputSchema: z.object({ prompt: z.string() }) },
		({ prompt }, ctx) => {
			const answer = sampledText(ctx, 'reply');
			if (answer !== undefined) return text(`LLM response: ${answer}`);
			return inputRequired({ inputRequests: { reply: askModel(prompt) } });
		},
	);

	server.registerTool(
		'test_elicitation',
		{
			description: 'Shows a message and asks for contact details',
			inputSchema: z.object({ message: z.string() }),
		},
		({ message }, ctx) =>
			askForm(ctx, {
				message,
				requestedSchema: {
					type: 'object',
					properties: {
						username: { type: 'string', description: "User's response" },
						email: { type: 'string', description: "User's email address" },
					},
					required: ['username', 'email'],
				},
			}),
	);

	server.registerTool(
		'test_elicitation_sep1034_defaults',
		{ description: 'Asks with default values' },
		(ctx) =>
			askForm(ctx, {
				message: 'Please review the values',
				requestedSchema: {
					type: 'object',
					properties: {
						name: { type: 'string', default: 'John Doe' },
						age: { type: 'integer', default: 30 },
						score: { type: 'number', default: 95.5 },
						status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
						verified: { type: 'boolean', default: true },
					},
				},
			}),
	);

	server.registerTool(
		'test_elicitation_sep1330_enums',
		{ description: 'Asks with every kind of choice' },
		(ctx) =>
			askForm(ctx, {
				message: 'Please choose',
				requestedSchema: {
					type: 'object',
					properties: {
						untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
						titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
						legacyEnum: {
							type: 'string',
							enum: ['opt1', 'opt2', 'opt3'],
							enumNames: ['Option One', 'Option Two', 'Option Three'],
						},
						untitledMulti: {
							type: 'array',
							items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
						},
						titledMulti: {
							type: 'array',
							items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') },
						},
					},
				},
			}),
	);
}

function titled(...titles: string[]): { const: string; title: string }[] {
	return titles.map((title, index) => ({ const: `value${index + 1}`, title }));
}

/** Asks one form and answers with what the user did with it. */
function askForm(
	ctx: ServerContext,
	params: Pick<ElicitRequestFormParams, 'message' | 'requestedSchema'>,
): CallResult | ReturnType<typeof inputRequired> {
	const answer = inputResponse(ctx.mcpReq.inputResponses, 'form');
	if (answer.kind !== 'elicit')
		return inputRequired({ inputRequests: { form: inputRequired.elicit(params) } });
	return text(`User response: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
}
