/**
 * Every change is one script, hence done as a whole or not at all. KEYS[1] is what all keys begin with:
 *
 * - `task:<id>`, a hash: `record`, what of it the scripts look at or change, arguments, result, and `step:<name>` for
 *   each step;
 * - `open`, `ended`: the ids of tasks by the order in which they were created, and the same for each principal;
 * - `run`: ids by when a worker may claim them or, once offered to one, may be offered to the next; `due`: by deadline;
 * - `key:<principal and key>`: the id that an idempotency key belongs to;
 * - `seq`: how many tasks were created; `changes`: the stream that tells of changes; `version`: of all this.
 *
 * A write that may be refused for want of memory comes first in each script, so that nothing is done by halves.
 * Numbers stay texts: Lua would round them.
 */
import { type Script, scriptOf } from './connection.ts';

/** Most tasks that one script looks at for a page; nobody else is served meanwhile. */
const LOOKED_AT = 500;

/** The parts of a task that make up its record, in the order of `RecordRow`, without its result. */
export const RECORD_FIELDS: readonly string[] = ['record', 'journalled', 'expires', 'due'];

const FIELD_LIST = RECORD_FIELDS.map((field) => `'${field}'`).join(', ');

const PRELUDE = `
	local base = KEYS[1]
	local call = redis.call
	local function task(id) return base .. 'task:' .. id end
	local function put(id, from, to)
		for i = from, to, 100 do call('HSET', task(id), unpack(ARGV, i, math.min(i + 99, to))) end
	end
	local function index(id, principal, set, seq)
		call('ZADD', base .. set, seq, id)
		call('ZADD', base .. set .. ':' .. principal, seq, id)
	end
	local function unindex(id, principal, set)
		call('ZREM', base .. set, id)
		call('ZREM', base .. set .. ':' .. principal, id)
	end
	local function schedule(id, run, due)
		call('ZADD', base .. 'due', due, id)
		if run == '' then call('ZREM', base .. 'run', id) else call('ZADD', base .. 'run', run, id) end
	end
	local function forget(id)
		local owned = call('HMGET', task(id), 'principal', 'key')
		unindex(id, owned[1], 'open')
		unindex(id, owned[1], 'ended')
		call('ZREM', base .. 'run', id)
		call('ZREM', base .. 'due', id)
		if owned[2] ~= '' then call('DEL', base .. 'key:' .. owned[2]) end
		call('DEL', task(id))
	end
`;

/** Id, principal, key, set, limits (total, principal, kept), run, due; then fields and values. */
export const CREATE: Script = script(`
	local id, principal, key, set = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
	-- It is this very task, whose first confirmation was lost.
	if call('EXISTS', task(id)) == 1 then return {'created'} end
	local known = key ~= '' and call('GET', base .. 'key:' .. key)
	if known then
		return {'exists', unpack(call('HMGET', task(known), ${FIELD_LIST}, 'result'))}
	end
	if call('ZCARD', base .. 'open') >= tonumber(ARGV[5]) then return {'total'} end
	if call('ZCARD', base .. 'open:' .. principal) >= tonumber(ARGV[6]) then return {'principal'} end
	put(id, 10, #ARGV)
	if key ~= '' then call('SET', base .. 'key:' .. key, id) end
	index(id, principal, set, call('INCR', base .. 'seq'))
	schedule(id, ARGV[8], ARGV[9])
	local ended = base .. 'ended:' .. principal
	local surplus = call('ZCARD', ended) - tonumber(ARGV[7])
	if surplus > 0 then
		for _, old in ipairs(call('ZRANGE', ended, 0, surplus - 1)) do forget(old) end
	end
	return {'created'}
`);

/** Id, revision that must be there, whether it is sent again, set, run, due, result; then fields and values. */
export const REPLACE: Script = script(`
	local id, set, result = ARGV[1], ARGV[4], ARGV[7]
	local stored = call('HMGET', task(id), 'revision', 'principal')
	if stored[1] ~= ARGV[2] then
		if ARGV[3] == '0' or not stored[1] then return 0 end
		-- The first confirmation was lost if this very record is there.
		local found = call('HMGET', task(id), 'record', 'result')
		return (found[1] == ARGV[9] and (found[2] or '') == result) and 1 or 0
	end
	put(id, 8, #ARGV)
	if result == '' then call('HDEL', task(id), 'result') else call('HSET', task(id), 'result', result) end
	if not call('ZSCORE', base .. set, id) then
		local before = set == 'open' and 'ended' or 'open'
		local seq = call('ZSCORE', base .. before, id)
		unindex(id, stored[2], before)
		index(id, stored[2], set, seq)
	end
	schedule(id, ARGV[5], ARGV[6])
	return 1
`);

/** Id, token, name, value. */
export const SAVE_STEP: Script = script(`
	local id, name = ARGV[1], 'step:' .. ARGV[3]
	local held = call('HMGET', task(id), 'token', 'steps')
	if held[1] ~= ARGV[2] then return 0 end
	call('HSET', task(id), 'journalled', '1')
	local number = tonumber(held[2]) + 1
	if call('HSETNX', task(id), name, number .. ' ' .. ARGV[4]) == 1 then
		call('HSET', task(id), 'steps', number)
	end
	return 1
`);

/** Expiry; then ids and tokens. Answers ids and revisions. */
export const RENEW: Script = script(`
	local held = {}
	for i = 2, #ARGV, 2 do
		local id = ARGV[i]
		local stored = call('HMGET', task(id), 'token', 'revision')
		if stored[1] == ARGV[i + 1] then
			call('HSET', task(id), 'expires', ARGV[1], 'due', ARGV[1])
			call('ZADD', base .. 'due', ARGV[1], id)
			held[#held + 1] = id
			held[#held + 1] = stored[2]
		end
	end
	return held
`);

/** Now, limit, until when what is taken is offered to nobody else. Answers all fields of each, with their values. */
export const TAKE: Script = script(`
	local tasks = {}
	for _, id in ipairs(call('ZRANGEBYSCORE', base .. 'run', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
		call('ZADD', base .. 'run', ARGV[3], id)
		tasks[#tasks + 1] = call('HGETALL', task(id))
	end
	return tasks
`);

/** Id, revision. */
export const REMOVE: Script = script(`
	if call('HGET', task(ARGV[1]), 'revision') ~= ARGV[2] then return 0 end
	forget(ARGV[1])
	return 1
`);

/**
 * Upper bound, how many, how many sets; the sets, then the statuses, none for all. Answers up to where it looked, which
 * is empty where there is nothing further, and the parts of each record with its number before them.
 */
export const LIST: Script = script(`
	local limit, sets = tonumber(ARGV[2]), tonumber(ARGV[3])
	local wanted = {}
	for i = 4 + sets, #ARGV do wanted[ARGV[i]] = true end
	local all = #ARGV == 3 + sets
	local found, floor = {}, 0
	for i = 4, 3 + sets do
		local some = call('ZREVRANGEBYSCORE', base .. ARGV[i], ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', 0, ${LOOKED_AT})
		for j = 1, #some, 2 do found[#found + 1] = {some[j], some[j + 1], tonumber(some[j + 1])} end
		-- Below the last of a set that goes on, others of it may come in between.
		if #some == ${2 * LOOKED_AT} then floor = math.max(floor, tonumber(some[#some])) end
	end
	table.sort(found, function(a, b) return a[3] > b[3] end)
	local page, looked = {}, ''
	for _, entry in ipairs(found) do
		if entry[3] < floor then break end
		if #page == limit then return {looked, page} end
		looked = entry[2]
		if all or wanted[call('HGET', task(entry[1]), 'status')] then
			page[#page + 1] = {looked, unpack(call('HMGET', task(entry[1]), ${FIELD_LIST}))}
		end
	end
	return {floor > 0 and looked or '', page}
`);

function script(body: string): Script {
	return scriptOf(PRELUDE + body);
}
