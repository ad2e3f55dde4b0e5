/** Addresses: one spelling each, traps known by their looks, and which of them are public. */
import { describe, expect, it } from 'vitest';
import { isPublicIp } from '../src/address-guard.ts';
import { normalAddress } from '../src/address.ts';
import { TrapWatch } from '../src/trap.ts';

describe('public addresses', () => {
	it.each([
		...['127.0.0.1', '10.1.2.3', '169.254.169.254', '192.168.0.1', '172.16.0.1', '100.64.0.1', '0.0.0.0'],
		...[
			'::1',
			'::',
			'fe80::1',
			'fd00::1',
			'::ffff:10.0.0.1',
			'64:ff9b::a00:1',
			'2002:a00:1::',
			'224.0.0.1',
			'nonsense',
		],
	])('%s is none', (ip) => expect(isPublicIp(ip)).toBe(false));

	it.each(['93.184.216.34', '2606:4700::6810:84e5'])('%s is one', (ip) => expect(isPublicIp(ip)).toBe(true));
});

describe('one spelling', () => {
	it.each([
		['HTTP://Example.COM:80/a/../b//c#part', 'http://example.com/b/c'],
		['https://user:secret@example.com./?', 'https://example.com/'],
		['https://example.com/?b=2&utm_source=x&a=1&PHPSESSID=3', 'https://example.com/?b=2&a=1'],
		['https://example.com/page;jsessionid=1234?x=1', 'https://example.com/page?x=1'],
		['../up?', 'https://example.com/up'],
		['//other.org/x', 'https://other.org/x'],
	])('%s is %s', (raw, normal) => expect(normalAddress(raw, 'https://example.com/dir/page')).toBe(normal));

	it.each([
		'mailto:a@b.org',
		'javascript:void(0)',
		'file:///etc/passwd',
		'http://[broken',
		`/${'a'.repeat(3_000)}`,
	])('%.40s is no address of a page', (raw) =>
		expect(normalAddress(raw, 'https://example.com/')).toBeUndefined(),
	);
});

describe('traps', () => {
	it.each([
		['https://e.org/a/b/a/b/a/b/', 'a path that repeats itself'],
		['https://e.org/x/x/x', 'a path that repeats itself'],
		['https://e.org/calendar/2044/01', 'a calendar without end'],
		['https://e.org/events?year=1402&month=3', 'a calendar without end'],
		['https://e.org/?a=1&a=1&a=1&a=1', 'a query string that repeats itself'],
	])('%s is %s', (address, reason) => expect(new TrapWatch(2026).refuse(address)).toBe(reason));

	it.each([
		...['https://e.org/docs/16/sql-copy.html', 'https://e.org/0/0/0/', 'https://e.org/blog/2024/05/a-title'],
		...['https://e.org/release/2044/notes.html', 'https://e.org/a/b/a/c/a/d', 'https://e.org/?page=2'],
	])('%s is none', (address) => expect(new TrapWatch(2026).refuse(address)).toBeUndefined());
});
