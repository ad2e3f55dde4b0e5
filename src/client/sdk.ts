/** The only file that imports the client SDK: what holdfast uses of it, under its own names. */
export {
	type CallToolRequestOptions,
	type CallToolResult,
	type Client,
	type ContentBlock,
	type FetchLike,
	type JSONRPCMessage,
	type McpSubscription,
	ProtocolError,
	SdkError,
	SdkErrorCode,
	SdkHttpError,
	type SubscriptionFilter,
	type Tool,
	type Transport,
	type TransportSendOptions,
	UnauthorizedError,
} from '@modelcontextprotocol/client';
