/** The only file that imports the server SDK: what holdfast uses of it, under its own names. */
import type { toNodeHandler } from '@modelcontextprotocol/node';

export type { NodeIncomingMessageLike as NodeRequest } from '@modelcontextprotocol/node';
export {
	type AuthInfo,
	bearerAuthChallengeResponse,
	type BearerAuthOptions,
	type CallToolResult,
	createMcpHandler,
	type EventStore,
	type InputRequiredResult,
	inputRequired,
	InMemoryServerEventBus,
	isInputRequiredResult,
	isJSONRPCRequest,
	isLegacyRequest,
	type JSONRPCMessage,
	localhostAllowedHostnames,
	localhostAllowedOrigins,
	McpServer,
	type McpRequestContext,
	type MessageExtraInfo,
	ProtocolError,
	readRequestBody,
	type ServerContext,
	type ServerEventBus,
	type Transport,
	UriTemplate,
	validateHostHeader,
	validateOriginHeader,
	verifyBearerToken,
	WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
export { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';

/** The SDK's `toNodeHandler`, loaded when HTTP is served: a server on stdio starts without it. */
export async function loadNodeHandler(): Promise<typeof toNodeHandler> {
	return (await import('@modelcontextprotocol/node')).toNodeHandler;
}
