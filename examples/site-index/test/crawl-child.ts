/** A process that crawls and may be killed: what it leaves behind is all that its successor has. */
import { crawl } from '../src/crawl.ts';
import { HostGates } from '../src/host-gate.ts';
import { completeOptions } from '../src/options.ts';
import { IndexThreads } from '../src/threads.ts';

const [file = '', startAddress = '', inFlight = '8'] = process.argv.slice(2);
const threads = new IndexThreads(file);
await crawl('the-task', 'tests', completeOptions({ startAddress, inFlight: Number(inFlight) }), {
	threads,
	hosts: new HostGates(),
	signal: AbortSignal.timeout(60_000),
	allowPrivate: true,
});
await threads.close();
