// What the model answers: by what the user said last, and after how many results of tools.

/** A call of the interpreter. */
function run(...codes) {
  const toolCalls = codes.map((code) => ({
    name: "code_interpreter",
    arguments: JSON.stringify({ code }),
  }));
  return { toolCalls };
}

/** A call of the shell. */
function shell(...commands) {
  return { toolCalls: [{ name: "shell", arguments: JSON.stringify({ commands, timeout_ms: 60_000 }) }] };
}

/** A call that changes a file of the client. */
function patch(diff) {
  return { toolCalls: [{ name: "apply_patch", arguments: JSON.stringify({ type: "update_file", path: "a.txt", diff }) }] };
}

/** A call of the function that has an answer's form. */
function person(names, fields) {
  const name = names.find((name) => name !== "code_interpreter");
  return { toolCalls: [{ name, arguments: JSON.stringify(fields) }] };
}

/** A call of tools that fetch. */
function fetch(...names) {
  return { toolCalls: names.map((name) => ({ name, arguments: '{"symbol":"ACME"}' })) };
}

/** A call of the interpreter under a contract, which derives from both series. */
function derive(code, expectedArtifacts) {
  const postProcessingContract = {
    operation: "join two series by day",
    reason: "neither tool joins them",
    inputAliases: ["get_price_history_1", "get_net_flow_1"],
    expectedArtifacts,
  };
  const given = { intent: "compare price and flow", code, postProcessingContract };
  return { toolCalls: [{ name: "code_interpreter", arguments: JSON.stringify(given) }] };
}

const DRAW = `merged = safe_merge_timeseries(get_price_history_1, get_net_flow_1, time_col="date", names=["price", "flow"])
fig, ax = plt.subplots()
ax.plot(merged.index, merged["close"])`;

const SAVE = `${DRAW}
save_figure("price by day", title="ACME")
set_result({"rows": len(merged), "flow": int(merged["net_flow"].sum())})`;

const READ = `import pandas as pd
sales = pd.read_csv("/mnt/data/sales.csv")
totals = sales.groupby("region").revenue.sum()
print(totals.to_dict())`;

const CHART = `import matplotlib.pyplot as plt
totals.plot.bar(title="Revenue by region")
plt.show()
totals.to_csv("/mnt/data/totals.csv")
print("saved")`;

// Only an interrupt gets to the second file; one that comes before the first is made leaves the second alone, or nothing.
const FOREVER = `import time
try:
    open("/mnt/data/began", "w").close()
    time.sleep(600)
finally:
    open("/mnt/data/ended", "w").close()`;

export const SCRIPTS = {
  "Say hello.": [{ after: 0, answer: { content: "Hello! Grüße, 你好 👋 from the model." } }],
  "Analyse sales.csv.": [
    { after: 0, answer: run(READ) },
    { after: 1, answer: run(CHART) },
    {
      after: 2,
      answer: ([totals, saved]) => ({
        content: `${totals.trim()} ${saved.includes("saved") ? "Here it is" : "It failed"}: [totals](sandbox:/mnt/data/totals.csv).`,
      }),
    },
  ],
  "Divide by zero.": [
    { after: 0, answer: run("print('before')\n1 / 0") },
    {
      after: 1,
      answer: ([error]) =>
        error.includes("ZeroDivisionError") ? run("print('repaired', 1 / 1)") : { content: `No error: ${error}` },
    },
    { after: 2, answer: ([, repaired]) => ({ content: `Now: ${repaired.trim()}` }) },
  ],
  "Sleep.": [
    { after: 0, answer: run("import time\nprint('before', flush=True)\ntime.sleep(600)") },
    { after: 1, answer: { content: "It took too long." } },
  ],
  "Run for ever.": [
    { after: 0, answer: run(FOREVER) },
    { after: 1, answer: { content: "It ended." } },
  ],
  "What was there?": [
    { after: 0, answer: run("import os\nprint(sorted(os.listdir('/mnt/data')))") },
    { after: 1, answer: ([files]) => ({ content: files.trim() }) },
  ],
  "What is the weather in Rome?": [
    { after: 0, answer: { toolCalls: [{ name: "get_weather", arguments: '{"city": "Rome"}' }] } },
    { after: 1, answer: ([weather]) => ({ content: `In Rome it is ${weather}.` }) },
  ],
  // What an answer's form asks for is called like a function. The first one has no number, which its reader sends back.
  "Ada is thirty-six years old.": [
    { after: 0, answer: (_results, _texts, names) => person(names, { name: "Ada", age: "thirty-six" }) },
    { after: 1, answer: (_results, _texts, names) => person(names, { name: "Ada", age: 36 }) },
  ],
  "Bea is seven years old.": [{ after: 0, answer: (_results, _texts, names) => person(names, { name: "Bea", age: 7 }) }],
  "Describe Rome as JSON.": [{ after: 0, answer: { content: '{"city": "Rome", "sunny": true}' } }],
  "My name is Ada.": [{ after: 0, answer: { content: "Noted." } }],
  "What is my name?": [
    {
      after: 0,
      answer: (_, texts) => ({ content: texts.includes("My name is Ada.") ? "Ada" : "I was never told." }),
    },
  ],
  "Two at once.": [
    { after: 0, answer: run("print('first')", "print('second')") },
    { after: 2, answer: (results) => ({ content: results.map((result) => result.trim()).join(" and ") }) },
  ],
  "Remember forty-two.": [
    { after: 0, answer: run("kept = 42") },
    { after: 1, answer: { content: "I keep it." } },
  ],
  "What did you keep?": [
    { after: 0, answer: run("print('kept', kept)") },
    { after: 1, answer: ([kept]) => ({ content: kept.trim() }) },
  ],
  // The sum is in no message: only the sandbox of the first turn knows it.
  "Set x to forty-one.": [
    { after: 0, answer: run("x = 41") },
    { after: 1, answer: { content: "It is set." } },
  ],
  "What is x plus one?": [
    { after: 0, answer: run("print(x + 1)") },
    { after: 1, answer: ([sum]) => ({ content: `It is ${sum.trim()}.` }) },
  ],
  "Draw the price and flow of ACME.": [
    { after: 0, answer: fetch("get_price_history", "get_net_flow") },
    { after: 2, answer: derive(DRAW, ["image"]) },
    {
      after: 3,
      answer: ([, , mistake]) =>
        mistake.includes("save_figure") ? derive(SAVE, ["image"]) : { content: `No mistake: ${mistake}` },
    },
    {
      after: 4,
      answer: ([, , , derived]) => ({ content: /"rows": ?90/.test(derived) ? "Over 90 days they move together." : derived }),
    },
  ],
  "How many numbers were that?": [
    { after: 0, answer: derive("set_result({'numbers': len(get_price_history_1) + len(get_net_flow_1)})", []) },
    {
      after: 1,
      answer: ([derived]) => ({ content: /"numbers": ?180/.test(derived) ? "That was 180 numbers." : derived }),
    },
  ],
  "What are the balances of ACME?": [
    { after: 0, answer: fetch("get_balances") },
    { after: 1, answer: ([failure]) => ({ content: failure }) },
  ],
  "Add two prices in a program.": [
    {
      after: 0,
      answer: {
        toolCalls: [
          {
            name: "programmatic_tool_calling",
            arguments: JSON.stringify({
              code: `const [a, b] = await Promise.all(["A", "B"].map((sku) => tools.get_price({ sku })));
const c = await tools.get_price({ sku: "C" });
text(a.eur + b.eur + c.eur);`,
            }),
          },
        ],
      },
    },
    { after: 1, answer: ([sum]) => ({ content: `Together: ${sum}` }) },
  ],
  "Count in a shell.": [
    { after: 0, answer: shell("printf '1\\n2\\n3\\n' | wc -l; echo end >&2", "exit 3") },
    { after: 1, answer: ([counted]) => ({ content: /3\n\[stderr\]\nend/.test(counted) ? "There are 3." : counted }) },
  ],
  "Save in a shell.": [
    { after: 0, answer: shell("echo saved > /mnt/data/saved.txt") },
    { after: 1, answer: { content: "Here it is: [saved](sandbox:/mnt/data/saved.txt)." } },
  ],
  "Repair in a shell.": [
    { after: 0, answer: shell("cat /mnt/data/missing.txt") },
    {
      after: 1,
      answer: ([mistake]) =>
        mistake.includes("No such file") ? shell("echo there") : { content: mistake },
    },
    { after: 2, answer: ([, repaired]) => ({ content: `Now: ${repaired.trim()}` }) },
  ],
  // The file that says what to do is named by the skill, and the first guess is wrong.
  "Use the skill.": [
    { after: 0, answer: shell("cat /skills/greeter/README.md") },
    {
      after: 1,
      answer: ([mistake]) =>
        mistake.includes("No such file") ? shell("cat /skills/greeter/SKILL.md; sh /skills/greeter/greet.sh") : { content: mistake },
    },
    { after: 2, answer: ([, read]) => ({ content: read.includes("Run greet.sh.") && read.includes("hello from a skill") ? "Greeted." : read }) },
  ],
  "List another folder.": [
    { after: 0, answer: shell("ls missing") },
    { after: 1, answer: ([mistake]) => (mistake.includes("No such file") ? shell("ls") : { content: `No mistake: ${mistake}` }) },
    { after: 2, answer: ([, listed]) => ({ content: `You have ${listed.trim()}.` }) },
  ],
  "List my folder.": [
    { after: 0, answer: shell("ls") },
    { after: 1, answer: ([listed]) => ({ content: `You have ${listed.trim()}.` }) },
  ],
  "Patch my file.": [
    {
      after: 0,
      answer: patch("@@\n-one\n+two\n"),
    },
    { after: 1, answer: ([patched]) => ({ content: `Patched: ${patched}` }) },
  ],
  "Repair my patch.": [
    { after: 0, answer: patch("@@\n-three\n+two\n") },
    {
      after: 1,
      answer: ([mistake]) =>
        mistake.includes("not in a.txt") ? patch("@@\n-one\n+two\n") : { content: `No mistake: ${mistake}` },
    },
    { after: 2, answer: ([, patched]) => ({ content: `Patched: ${patched}` }) },
  ],
  "Plan in words.": [
    { after: 0, answer: { toolCalls: [{ name: "plan", arguments: JSON.stringify({ input: "first rest" }) }] } },
    { after: 1, answer: ([planned]) => ({ content: `Planned: ${planned}` }) },
  ],
  // The first text does not match the tool's grammar. Clients that send their items back know nothing of it.
  "Plan in small words.": [
    { after: 0, answer: { toolCalls: [{ name: "plan", arguments: JSON.stringify({ input: "FIRST" }) }] } },
    {
      after: 1,
      answer: ([mistake]) =>
        mistake.includes("[a-z ]+")
          ? { toolCalls: [{ name: "plan", arguments: JSON.stringify({ input: "first rest" }) }] }
          : { content: `Planned: ${mistake}` },
    },
    { after: 2, answer: ([, planned]) => ({ content: `Planned: ${planned}` }) },
  ],
  // What the gateway asks in the user's name for a compaction.
  "Write a summary of the conversation": [{ after: 0, answer: { content: "It was long." } }],
  "Compute, then ask.": [
    { after: 0, answer: run("print(1 / 0)") },
    {
      after: 1,
      answer: ([error]) => (error.includes("ZeroDivisionError") ? run("print(6 * 7)") : { content: `No error: ${error}` }),
    },
    { after: 2, answer: { toolCalls: [{ name: "get_weather", arguments: '{"city": "Rome"}' }] } },
    { after: 3, answer: ([, product, weather]) => ({ content: `It is ${product.trim()} and ${weather}.` }) },
  ],
  "Find a tool for mail.": [
    { after: 0, answer: { toolCalls: [{ name: "tool_search", arguments: JSON.stringify({ query: "send mail" }) }] } },
    { after: 1, answer: { toolCalls: [{ name: "office__send_mail", arguments: JSON.stringify({ to: "Ada" }) }] } },
    { after: 2, answer: ([, sent]) => ({ content: `Mail: ${sent}` }) },
  ],
  "Which tools are there?": [{ after: 0, answer: (_results, _texts, names) => ({ content: names.join(" ") }) }],
  "Refuse.": [
    {
      after: 0,
      answer: { error: { message: "the prompt is too long", type: "invalid_request_error" }, status: 400 },
    },
  ],
  "Break off.": [
    { after: 0, answer: { content: "This sentence has no " + "very long ".repeat(20) }, truncateAfterChunks: 5 },
  ],
  // More than anybody should hold for a client that does not read it.
  "Flood.": [{ after: 0, answer: () => ({ content: "x".repeat(40 << 20) }), chunkSize: 16 << 10 }],
};
