/** The SDK's own code for what is wrong with the HTTP request itself. */
export const BAD_REQUEST = -32000;

/** An HTTP error with a JSON-RPC error in it, for a request whose id does not matter. */
export function refusal(
	status: number,
	message: string,
	{
		code = BAD_REQUEST,
		headers = {},
	}: { readonly code?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
	return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status, headers });
}
