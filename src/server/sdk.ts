/** The only file that imports the server SDK: what holdfast uses of it, under its own names. */
import type { toNodeHandler } from '@modelcontextprotocol/node';

export type { NodeIncomingMessageLike as NodeRequest } from '@modelcontextprotocol/node';
export {
	type AuthInfo,
	bearerAuthChallengeResponse,
	type BearerAuthOptions,
	type CallToolResult,
	createMcpHandler,
	type InputRequiredResult,
	inputRequired,
	InMemoryServerEventBus,
	isInputRequiredResult,
	isJSONRPCRequest,
	type JSONRPCMessage,
	localhostAllowedHostnames,
	localhostAllowedOrigins,
	McpServer,
	type McpRequestContext,
	ProtocolError,
	type ServerContext,
	type ServerEventBus,
	type Transport,
	UriTemplate,
	validateHostHeader,
	validateOriginHeader,
	verifyBearerToken,
} from '@modelcontextprotocol/server';
export { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';

/** The SDK's `toNodeHandler`, loaded when HTTP is served: a server on stdio starts without it. */
export async function loadNodeHandler(): Promise<typeof toNodeHandler> {
	return (await import('@modelcontextprotocol/node')).toNodeHandler;
}
