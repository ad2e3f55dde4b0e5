import { describe, test } from 'vitest';
import { sqlite } from '../../src/backend/sqlite/index.ts';
import { backendContract } from '../../src/testing/backend-contract.ts';
import { sqliteFolder } from './sqlite-folder.ts';

const newFile = sqliteFolder();

backendContract(
	{ name: 'sqlite', create: async (time) => sqlite({ file: newFile(), time }) },
	{ describe, test },
);
