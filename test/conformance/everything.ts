/**
 * The server that the conformance suite's non-task scenarios expect to find: one tool, resource or
 * prompt per thing a scenario calls by name. Names and shapes come from what the scenarios check.
 */
import {
	completable,
	createRequestStateCodec,
	fromJsonSchema,
	InMemoryServerEventBus,
	McpServer,
	type RequestStateCodec,
	ResourceTemplate,
	type ServerContext,
	type ServerEventBus,
} from '@modelcontextprotocol/server';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { registerInputRequired } from './everything-input.ts';
import { PNG_BASE64, WAV_BASE64 } from './fixture-media.ts';

/** What the fixtures need from whatever serves them. */
export interface FixtureHost {
	/** Where the two `test_trigger_*_change` tools publish; hand the same bus to the HTTP handler. */
	bus: ServerEventBus;
	/** Mints the `requestState` of multi-round-trip tools; its `verify` must be the server's hook. */
	requestState: RequestStateCodec;
}

export const fixtureHost: FixtureHost = {
	bus: new InMemoryServerEventBus(),
	requestState: createRequestStateCodec({ key: 'conformance-fixture-key-0123456789abcdef' }),
};

/** A fresh server with every non-task fixture, ready to be connected. */
export function buildServer(host: FixtureHost = fixtureHost): McpServer {
	const server = new McpServer(
		{ name: 'holdfast-conformance', version: '0.1.0' },
		{ requestState: { verify: (state, ctx) => host.requestState.verify(state, ctx) } },
	);
	registerEverything(server, host);
	return server;
}

export function registerEverything(server: McpServer, host: FixtureHost = fixtureHost): void {
	server.server.registerCapabilities({ logging: {}, resources: { subscribe: true, listChanged: true } });
	registerContentTools(server);
	registerBehaviourTools(server, host);
	registerSchemaTools(server);
	registerResources(server);
	registerPrompts(server);
	registerInputRequired(server, host.requestState);
}

export function textResult(text: string): { content: [{ type: 'text'; text: string }] } {
	return { content: [{ type: 'text', text }] };
}

function registerContentTools(server: McpServer): void {
	// First in tools/list: the header scenarios call the first listed tool without arguments.
	server.registerTool('test_simple_text', { description: 'Returns one text block' }, () =>
		textResult('This is a simple text response for testing.'),
	);

	server.registerTool('test_image_content', { description: 'Returns one image block' }, () => ({
		content: [{ type: 'image', data: PNG_BASE64, mimeType: 'image/png' }],
	}));

	server.registerTool('test_audio_content', { description: 'Returns one audio block' }, () => ({
		content: [{ type: 'audio', data: WAV_BASE64, mimeType: 'audio/wav' }],
	}));

	server.registerTool('test_embedded_resource', { description: 'Returns one embedded resource' }, () => ({
		content: [
			{
				type: 'resource',
				resource: {
					uri: 'test://embedded-resource',
					mimeType: 'text/plain',
					text: 'This is an embedded resource content.',
				},
			},
		],
	}));

	server.registerTool(
		'test_multiple_content_types',
		{ description: 'Returns text, image and resource' },
		() => ({
			content: [
				{ type: 'text', text: 'Multiple content types test:' },
				{ type: 'image', data: PNG_BASE64, mimeType: 'image/png' },
				{
					type: 'resource',
					resource: {
						uri: 'test://mixed-content-resource',
						mimeType: 'application/json',
						text: JSON.stringify({ test: 'data', value: 123 }),
					},
				},
			],
		}),
	);
}

function registerBehaviourTools(server: McpServer, host: FixtureHost): void {
	server.registerTool('test_error_handling', { description: 'Always fails' }, () => {
		throw new Error('This tool intentionally returns an error for testing');
	});

	server.registerTool(
		'test_tool_with_logging',
		{ description: 'Logs three times while it runs' },
		async (ctx) => {
			await ctx.mcpReq.log('info', 'Tool execution started');
			await sleep(50);
			await ctx.mcpReq.log('info', 'Tool processing data');
			await sleep(50);
			await ctx.mcpReq.log('info', 'Tool execution completed');
			return textResult('Logged three messages.');
		},
	);

	server.registerTool(
		'test_logging_tool',
		{ description: 'Logs once, if the client asked for logs' },
		async (ctx) => {
			await ctx.mcpReq.log('info', 'A message for clients that set a log level');
			return textResult('Logged one message.');
		},
	);

	server.registerTool(
		'test_tool_with_progress',
		{ description: 'Reports progress three times' },
		async (ctx) => {
			await reportProgress(ctx, 0);
			await sleep(50);
			await reportProgress(ctx, 50);
			await sleep(50);
			await reportProgress(ctx, 100);
			return textResult('Progress reported.');
		},
	);

	server.registerTool(
		'test_reconnection',
		{ description: 'Closes its own stream, then answers, so that the client has to resume' },
		async (ctx) => {
			await sleep(50);
			ctx.http?.closeSSE?.();
			await sleep(150);
			return textResult('Answered after the stream was closed.');
		},
	);

	server.registerTool('test_trigger_tool_change', { description: 'Announces a changed tool list' }, () => {
		host.bus.publish({ kind: 'tools_list_changed' });
		server.sendToolListChanged();
		return textResult('Announced.');
	});

	server.registerTool(
		'test_trigger_prompt_change',
		{ description: 'Announces a changed prompt list' },
		() => {
			host.bus.publish({ kind: 'prompts_list_changed' });
			server.sendPromptListChanged();
			return textResult('Announced.');
		},
	);
}

async function reportProgress(ctx: ServerContext, progress: number): Promise<void> {
	const progressToken = ctx.mcpReq._meta?.progressToken;
	if (progressToken === undefined) return;
	await ctx.mcpReq.notify({
		method: 'notifications/progress',
		params: { progressToken, progress, total: 100 },
	});
}

function registerSchemaTools(server: McpServer): void {
	server.registerTool(
		'json_schema_2020_12_tool',
		{
			description: 'Advertises JSON Schema 2020-12 keywords that must survive tools/list',
			inputSchema: fromJsonSchema({
				$schema: 'https://json-schema.org/draft/2020-12/schema',
				type: 'object',
				$defs: {
					address: {
						$anchor: 'addressDef',
						type: 'object',
						properties: { street: { type: 'string' }, city: { type: 'string' } },
					},
				},
				properties: {
					name: { type: 'string' },
					address: { $ref: '#/$defs/address' },
					contactMethod: { type: 'string', enum: ['phone', 'email'] },
					phone: { type: 'string' },
					email: { type: 'string' },
				},
				allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
				if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
				// oxlint-disable-next-line unicorn/no-thenable -- a JSON Schema keyword
				then: { required: ['phone'] },
				else: { required: ['email'] },
				additionalProperties: false,
			}),
		},
		(args) => textResult(JSON.stringify(args)),
	);

	server.registerTool(
		'test_param_header',
		{
			description: 'Mirrors one argument into an Mcp-Param header',
			inputSchema: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
		},
		({ region }) => textResult(`region: ${region}`),
	);
}

function registerResources(server: McpServer): void {
	server.registerResource(
		'static-text',
		'test://static-text',
		{ description: 'A fixed text', mimeType: 'text/plain' },
		(uri) => ({
			contents: [
				{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
			],
		}),
	);

	server.registerResource(
		'static-binary',
		'test://static-binary',
		{ description: 'A fixed image', mimeType: 'image/png' },
		(uri) => ({ contents: [{ uri: uri.href, mimeType: 'image/png', blob: PNG_BASE64 }] }),
	);

	server.registerResource(
		'watched-resource',
		'test://watched-resource',
		{ description: 'A text to subscribe to', mimeType: 'text/plain' },
		(uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Nothing has changed yet.' }] }),
	);

	server.registerResource(
		'template-data',
		new ResourceTemplate('test://template/{id}/data', { list: undefined }),
		{ description: 'Data by id', mimeType: 'application/json' },
		(uri, { id }) => ({
			contents: [
				{
					uri: uri.href,
					mimeType: 'application/json',
					text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
				},
			],
		}),
	);

	// 2025 revisions only; on 2026-07-28 the SDK answers both methods with -32601 by itself.
	server.server.setRequestHandler('resources/subscribe', () => ({}));
	server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

function registerPrompts(server: McpServer): void {
	server.registerPrompt('test_simple_prompt', { description: 'A prompt without arguments' }, () => ({
		messages: [{ role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } }],
	}));

	const places = ['test-one', 'test-two', 'other'];
	server.registerPrompt(
		'test_prompt_with_arguments',
		{
			description: 'A prompt with two arguments',
			argsSchema: z.object({
				arg1: completable(z.string().describe('First test argument'), (value) =>
					places.filter((place) => place.startsWith(value)),
				),
				arg2: z.string().describe('Second test argument'),
			}),
		},
		({ arg1, arg2 }) => ({
			messages: [
				{
					role: 'user',
					content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` },
				},
			],
		}),
	);

	server.registerPrompt(
		'test_prompt_with_embedded_resource',
		{
			description: 'A prompt that embeds a resource',
			argsSchema: z.object({ resourceUri: z.string().describe('URI of the resource to embed') }),
		},
		({ resourceUri }) => ({
			messages: [
				{
					role: 'user',
					content: {
						type: 'resource',
						resource: {
							uri: resourceUri,
							mimeType: 'text/plain',
							text: 'Embedded resource content for testing.',
						},
					},
				},
				{ role: 'user', content: { type: 'text', text: 'Please process the embedded resource above.' } },
			],
		}),
	);

	server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image' }, () => ({
		messages: [
			{ role: 'user', content: { type: 'image', data: PNG_BASE64, mimeType: 'image/png' } },
			{ role: 'user', content: { type: 'text', text: 'Please analyze the image above.' } },
		],
	}));
}
