import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { Script } from './scripted-model.ts';

/** A model that releases a version, does something else while it is built, and then tells how it went. */
export function releaseScript(version: string): Script {
	return (messages) => {
		switch (messages.filter(({ role }) => role === 'assistant').length) {
			case 0:
				return { tool: 'release_build', arguments: { version } };
			case 1:
				return { tool: 'list_changes', arguments: { version } };
			case 2:
				return 'It is being built. I will tell you when it is out.';
			default:
				return `The news: ${contentOf(messages.at(-1))}`;
		}
	};
}

/** The text of a message. */
export function contentOf(message: ChatCompletionMessageParam | undefined): string {
	return typeof message?.content === 'string' ? message.content : '';
}
