import { defineConfig } from 'vitest/config';

const shared = { pool: 'forks', testTimeout: 30_000, hookTimeout: 30_000 } as const;

export default defineConfig({
	test: {
		projects: [
			{ test: { ...shared, name: 'test', include: ['test/**/*.test.ts'] } },
			{ test: { ...shared, name: 'examples', include: ['examples/**/*.test.ts'] } },
		],
	},
});
