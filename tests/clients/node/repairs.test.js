// openai-node, the AI SDK and openai-agents: what a model repairs after a mistake, skills, and compactions.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { after, before, test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { Agent, OpenAIResponsesModel, applyPatchTool, codeInterpreterTool, run, setTracingDisabled, shellTool } from "@openai/agents";
import { generateText, isStepCount } from "ai";
import OpenAI, { toFile } from "openai";

import { HELLO, KEY, MODELS, PATIENCE, URL } from "./gateway.js";

setTracingDisabled(true);

const openai = new OpenAI({ baseURL: URL, apiKey: KEY, timeout: PATIENCE, maxRetries: 0 });
const provider = createOpenAI({ baseURL: URL, apiKey: KEY });
const ASKS = {
  "at once": (request) => openai.responses.create(request),
  streamed: (request) => openai.responses.stream(request).finalResponse(),
};
const FORMAT = { type: "grammar", syntax: "regex", definition: "[a-z ]+" };
const SKILL = {
  "greeter/SKILL.md": "---\nname: greeter\ndescription: Greets. Use it when somebody wants a greeting.\n---\nRun greet.sh.\n",
  "greeter/greet.sh": "echo hello from a skill\n",
};

let skill;

before(async () => {
  const files = Object.entries(SKILL).map(([name, text]) => toFile(Buffer.from(text), name));
  skill = await openai.skills.create({ files: await Promise.all(files) });
  assert.deepEqual([skill.name, skill.default_version], ["greeter", "1"]);
});

after(() => openai.skills.delete(skill.id));

/** A command of the client's computer, which has one file. */
function listed(command) {
  if (command === "ls") return { stdout: "a.txt", stderr: "", outcome: { type: "exit", exitCode: 0 } };
  return { stdout: "", stderr: "ls: No such file or directory", outcome: { type: "exit", exitCode: 2 } };
}

/** An editor of one file, which has one line. */
function editor() {
  const file = { text: "one" };
  const apply = async (operation) => {
    if (!operation.diff.includes(`-${file.text}\n`)) return { status: "failed", output: "the lines are not in a.txt" };
    file.text = "two";
    return { status: "completed", output: "a.txt is changed" };
  };
  return { file, apply, createFile: apply, updateFile: apply, deleteFile: apply };
}

for (const model of MODELS) {
  for (const [how, ask] of Object.entries(ASKS)) {
    test(`openai-node, ${model} ${how}: a command that fails is repaired, and a skill is read`, async () => {
      const environment = { type: "container_auto", skills: [{ type: "skill_reference", skill_id: skill.id }] };
      const tools = [{ type: "shell", environment }];
      const greeted = await ask({ model, input: "Use the skill.", tools });
      assert.equal(greeted.output_text, "Greeted.");
      const codes = greeted.output.filter((item) => item.type === "shell_call_output").map((item) => item.output[0].outcome.exit_code);
      assert.deepEqual(codes, [1, 0]);
    });

    test(`openai-node, ${model} ${how}: a text that breaks its grammar never reaches the client`, async () => {
      const planned = await ask({ model, input: "Plan in small words.", tools: [{ type: "custom", name: "plan", format: FORMAT }] });
      assert.deepEqual(planned.output.map((item) => item.input), ["first rest"]);
    });

    test(`openai-node, ${model} ${how}: a long conversation is compacted, and goes on from the compaction`, async () => {
      const said = [{ role: "user", content: "long ".repeat(2000) }, { role: "assistant", content: "yes" }];
      const context_management = [{ type: "compaction", compact_threshold: 1000 }];
      const hello = { role: "user", content: "Say hello." };
      const first = await ask({ model, input: [...said, hello], context_management });
      assert.deepEqual(first.output.map((item) => item.type), ["compaction", "message"]);
      assert.equal(first.output_text, HELLO);
      const second = await ask({ model, input: [...first.output, hello] });
      assert.equal(second.output_text, HELLO);
    });
  }

  const text = (tools, prompt, options) =>
    generateText({ model: provider.responses(model), tools, prompt, stopWhen: isStepCount(4), ...options }).then((result) => result.text);

  test(`the AI SDK, ${model}: commands in a container and a skill`, async () => {
    const skills = [{ type: "skillReference", providerReference: { openai: skill.id } }];
    const shell = provider.tools.shell({ environment: { type: "containerAuto", skills } });
    assert.equal(await text({ shell }, "Use the skill."), "Greeted.");
    assert.equal(await text({ shell }, "Repair in a shell."), "Now: there");
  });

  test(`the AI SDK, ${model}: commands, patches and texts that its client repairs`, async () => {
    const execute = async ({ action }) => ({ output: action.commands.map(listed) });
    const shell = provider.tools.shell({ environment: { type: "local" }, execute });
    assert.equal(await text({ shell }, "List another folder."), "You have a.txt.");
    const { file, apply } = editor();
    const apply_patch = provider.tools.applyPatch({ execute: ({ operation }) => apply(operation) });
    assert.equal(await text({ apply_patch }, "Repair my patch."), "Patched: a.txt is changed");
    assert.equal(file.text, "two");
    const texts = [];
    const plan = provider.tools.customTool({ format: FORMAT, execute: async (input) => (texts.push(input), "good") });
    assert.match(await text({ plan }, "Plan in small words."), /good$/);
    assert.deepEqual(texts, ["first rest"]);
  });

  test(`the AI SDK, ${model}: a conversation that it lets the gateway compact`, async () => {
    const messages = [
      { role: "user", content: "long ".repeat(2000) },
      { role: "assistant", content: "yes" },
      { role: "user", content: "Say hello." },
    ];
    const contextManagement = [{ type: "compaction", compactThreshold: 1000 }];
    const result = await generateText({ model: provider.responses(model), messages, providerOptions: { openai: { contextManagement } } });
    assert.equal(result.text, HELLO);
    assert.ok(result.content.some((part) => part.kind === "openai.compaction"));
    const again = [...messages, ...result.response.messages, { role: "user", content: "Say hello." }];
    assert.equal((await generateText({ model: provider.responses(model), messages: again })).text, HELLO);
  });

  const answer = async (tool, said) => {
    const agent = new Agent({ name: "operator", model: new OpenAIResponsesModel(openai, model), tools: [tool] });
    return (await run(agent, said)).finalOutput;
  };

  test(`openai-agents of npm, ${model}: commands in a container, a skill, and code`, async () => {
    const environment = { type: "container_auto", skills: [{ type: "skill_reference", skillId: skill.id }] };
    assert.equal(await answer(shellTool({ environment }), "Use the skill."), "Greeted.");
    assert.equal(await answer(shellTool({ environment: { type: "container_auto" } }), "Repair in a shell."), "Now: there");
    assert.equal(await answer(codeInterpreterTool(), "Divide by zero."), "Now: repaired 1.0");
  });

  test(`openai-agents of npm, ${model}: commands and patches that its client repairs`, async () => {
    const shell = { run: async (action) => ({ output: action.commands.map(listed) }) };
    assert.equal(await answer(shellTool({ shell }), "List another folder."), "You have a.txt.");
    const own = editor();
    assert.equal(await answer(applyPatchTool({ editor: own }), "Repair my patch."), "Patched: a.txt is changed");
    assert.equal(own.file.text, "two");
  });
}
