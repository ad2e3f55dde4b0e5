/** A stand-in on stdio: a family whose work ends with the second check. */
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { jsonText, oneByOne, standInServer, texts } from './folding-stand-in.ts';

const status = oneByOne('running', 'done');
const properties = { job: { type: 'string' } };

serveStdio(() =>
	standInServer(
		{
			start_report: { properties: {}, call: () => texts('Started job r-1.') },
			cancel_report: { properties, call: () => texts('stopped') },
			get_report: {
				properties,
				call: ({ job }) => jsonText({ job: job ?? null, status: status(), text: 'the report' }),
			},
		},
		() => {},
	),
);
