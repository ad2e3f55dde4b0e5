/** The only file that imports the client SDK: what holdfast uses of it, under its own names. */
export {
	type CallToolRequestOptions,
	type CallToolResult,
	Client,
	type ContentBlock,
	type ElicitResult,
	type FetchLike,
	type JSONRPCMessage,
	type McpSubscription,
	ProtocolError,
	SdkError,
	SdkErrorCode,
	SdkHttpError,
	serializeMessage,
	SSEClientTransport,
	StreamableHTTPClientTransport,
	type SubscriptionFilter,
	type Tool,
	type Transport,
	type TransportSendOptions,
	UnauthorizedError,
} from '@modelcontextprotocol/client';
export { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
