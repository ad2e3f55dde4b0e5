import type { Command } from 'commander';
import { type Ending, statuses, taskIdArgument, wholeNumber, withStore, withVerbose } from './arguments.ts';
import type { AnswerOptions } from './tasks-answer.ts';
import type { CancelOptions } from './tasks-cancel.ts';
import type { ListOptions } from './tasks-list.ts';
import type { ShowOptions } from './tasks-show.ts';

/** Adds `holdfast tasks` and the commands below it. */
export function addTasksCommand(program: Command, end: Ending): void {
	const tasks = program
		.command('tasks')
		.summary('look at the tasks of a store, cancel and answer them')
		.description('Works on the store itself: also while a server uses it, and on the tasks of everybody.');
	const command = (name: string, description: string): Command =>
		withStore(withVerbose(tasks.command(name).description(description))).option('--json', 'print JSON');

	command('list', 'Lists tasks, newest first.')
		.option('--status <status>', 'only tasks with one of these statuses, separated by commas', statuses)
		.option('--principal <principal>', 'only the tasks of this principal')
		.option('--limit <number>', 'most tasks to list', wholeNumber(1, 1_000_000), 50)
		.action(async (options: ListOptions) => {
			const { listTasks } = await import('./tasks-list.ts');
			end(await listTasks(options));
		});

	command('show', 'Shows everything that is stored for one task.')
		.argument('<task-id>', 'as `tasks list` shows it', taskIdArgument)
		.action(async (taskId: string, options: ShowOptions) => {
			const { showTask } = await import('./tasks-show.ts');
			end(await showTask(taskId, options));
		});

	command('cancel', 'Cancels a task.')
		.argument('<task-id>', 'as `tasks list` shows it', taskIdArgument)
		.action(async (taskId: string, options: CancelOptions) => {
			const { cancelTask } = await import('./tasks-cancel.ts');
			end(await cancelTask(taskId, options));
		});

	command('answer', 'Answers an open question of a task.')
		.argument('<task-id>', 'as `tasks list` shows it', taskIdArgument)
		.argument('<key>', 'of the question, as `tasks show` shows it')
		.option('--accept [json]', "say yes, with the form's values as a JSON object")
		.option('--decline', 'say no')
		.action(async (taskId: string, key: string, options: AnswerOptions) => {
			const { answerTask } = await import('./tasks-answer.ts');
			end(await answerTask(taskId, key, options));
		});
}
