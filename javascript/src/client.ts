import * as api from "./generated.js";
import { type Options, Server, fields } from "./http.js";
import { Session, type SessionOptions } from "./session.js";

/** Address of a server and the key for it. */
export interface ClientOptions {
  /** URL. It can end in `/v1`, as those for OpenAI's SDKs do. */
  url: string;
  key?: string;
  /** `fetch` to use instead of the runtime's. */
  fetch?: typeof fetch;
}

/** A page of a list. */
export interface Page {
  /** ID of the object after which the page begins. */
  after?: string;
  limit?: number;
  order?: "asc" | "desc";
}

/** Rows of a table. */
export interface TableRows {
  offset?: number;
  limit?: number;
  sort?: number;
  descending?: boolean;
  format?: "json" | "csv" | "arrow";
}

/** Object of a skill or of a version of one, in OpenAI's form. */
export interface Skill {
  id: string;
  [field: string]: unknown;
}

/** A Cellblock server. */
export class Client {
  readonly #server: Server;

  constructor(options: ClientOptions) {
    this.#server = new Server(options.url, options.key, options.fetch);
  }

  /** Starts a session. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const made = await this.#server.call(api.operations.create_session, { value: fields(options) });
    return new Session(made.id, this.#server);
  }

  /** Continues a session by its ID. */
  async continueSession(id: string): Promise<Session> {
    const found = await this.#server.call(api.operations.get_session, { names: { id } });
    return new Session(found.id, this.#server);
  }

  /** Your sessions. */
  async sessions(): Promise<api.Session[]> {
    return (await this.#server.call(api.operations.list_sessions)).data;
  }

  /** Your volumes. `session({ volume })` creates one. */
  async volumes(page: Page = {}): Promise<api.Volume[]> {
    return (await this.#server.call(api.operations.list_volumes, { query: { ...page } })).data;
  }

  volume(name: string): Promise<api.Volume> {
    return this.#server.call(api.operations.get_volume, { names: { name } });
  }

  /** Deletes a volume with its files. */
  async deleteVolume(name: string): Promise<void> {
    await this.#server.call(api.operations.delete_volume, { names: { name } });
  }

  /** Records of what your code ran. */
  async runs(query: Page & { session?: string } = {}): Promise<api.Run[]> {
    return (await this.#server.call(api.operations.list_runs, { query: { ...query } })).data;
  }

  run(id: string): Promise<api.Run> {
    return this.#server.call(api.operations.get_run, { names: { id } });
  }

  /** A run with all that it needs to be repeated elsewhere. Counts as a cell. */
  exportRun(id: string): Promise<api.RunExport> {
    return this.#server.call(api.operations.export_run, { names: { id } });
  }

  /** Runs a run again and compares: `result` is `equal`, `differs` or `impossible`. */
  replay(id: string): Promise<api.Replay> {
    return this.#server.call(api.operations.replay_run, { names: { id } });
  }

  /** Bytes of an artifact. `format` converts a chart. */
  artifact(sha256: string, { format }: { format?: "png" | "svg" | "html" | "vega-lite" } = {}): Promise<Uint8Array> {
    return this.#server.call(api.operations.read_artifact, { names: { sha256 }, query: { format } });
  }

  /** Rows of a displayed table, in a format; JSON by default. Counts as a cell. */
  rows(sha256: string, query: TableRows = {}): Promise<Uint8Array> {
    return this.#server.call(api.operations.read_rows, { names: { sha256 }, query: { ...query } });
  }

  /** Datasets of a project. */
  async datasets(project: string): Promise<api.PublishedDataset[]> {
    return (await this.#server.call(api.operations.list_project_datasets, { names: { project } })).data;
  }

  /** A dataset. With `session`, that session's code may load it. */
  dataset(project: string, slug: string, query: { session?: string } = {}): Promise<api.PublishedDataset> {
    return this.#server.call(api.operations.read_project_dataset, { names: { project, slug }, query });
  }

  /** All rows of a dataset. CSV and Arrow count as a cell. */
  datasetContent(project: string, slug: string, query: { format?: "parquet" | "csv" | "arrow" } = {}): Promise<Uint8Array> {
    return this.#server.call(api.operations.read_project_dataset_content, { names: { project, slug }, query });
  }

  async datasetVersions(project: string, slug: string): Promise<api.DatasetVersion[]> {
    return (await this.#server.call(api.operations.list_project_dataset_versions, { names: { project, slug } })).data;
  }

  removeDataset(project: string, slug: string): Promise<api.PublishedDataset> {
    return this.#server.call(api.operations.remove_project_dataset, { names: { project, slug } });
  }

  /** Your skills, and after them those that the operator shares. */
  async skills(): Promise<Skill[]> {
    return ((await this.#server.call(api.operations.list_skills)) as { data: Skill[] }).data;
  }

  skill(id: string): Promise<Skill> {
    return this.#server.call(api.operations.get_skill, { names: { skill: id } });
  }

  /** Uploads a skill: a zip, or the files of one folder by their paths, such as `pdf-form/SKILL.md`. */
  addSkill(source: Uint8Array | Record<string, string | Uint8Array>): Promise<Skill> {
    return this.#server.call(api.operations.create_skill, { body: upload(source) });
  }

  /** Uploads a version of a skill. */
  addSkillVersion(id: string, source: Uint8Array | Record<string, string | Uint8Array>): Promise<Skill> {
    return this.#server.call(api.operations.add_skill_version, { names: { skill: id }, body: upload(source) });
  }

  /** Sets the default version of a skill. */
  setSkillVersion(id: string, version: string): Promise<Skill> {
    return this.#server.call(api.operations.update_skill, { names: { skill: id }, value: { default_version: version } });
  }

  async skillVersions(id: string): Promise<Skill[]> {
    return ((await this.#server.call(api.operations.list_skill_versions, { names: { skill: id } })) as { data: Skill[] }).data;
  }

  skillVersion(id: string, version: string): Promise<Skill> {
    return this.#server.call(api.operations.get_skill_version, { names: { skill: id, version } });
  }

  /** Files of a skill's version, by default the default one, as a zip. */
  skillContent(id: string, { version }: { version?: string } = {}): Promise<Uint8Array> {
    if (version === undefined) return this.#server.call(api.operations.read_skill, { names: { skill: id } });
    return this.#server.call(api.operations.read_skill_version, { names: { skill: id, version } });
  }

  /** Deletes a skill, or one version of it. */
  async deleteSkill(id: string, { version }: { version?: string } = {}): Promise<void> {
    if (version === undefined) await this.#server.call(api.operations.delete_skill, { names: { skill: id } });
    else await this.#server.call(api.operations.delete_skill_version, { names: { skill: id, version } });
  }

  /** Connectors of your key with their functions. */
  async connectors(): Promise<api.Connector[]> {
    return (await this.#server.call(api.operations.list_connectors)).data;
  }

  /** Calls a function of a connector. An `outcome` other than `ok` has an `error`. */
  call(connector: string, name: string, args: object = {}): Promise<api.ConnectorAnswer> {
    return this.#server.call(api.operations.call_connector, { names: { connector, function: name }, value: args });
  }

  /** Last decisions about hosts that your code wanted and quotas that it used up, the latest first. */
  async decisions(query: { session?: string; limit?: number } = {}): Promise<api.Decision[]> {
    return (await this.#server.call(api.operations.list_decisions, { query })).data;
  }

  /** Your key with its quotas and how much of them is used. */
  ownKey(): Promise<api.OwnKey> {
    return this.#server.call(api.operations.get_own_key);
  }

  /** All keys of the server. Needs an administrator's key, as the next four do. */
  async keys(): Promise<api.Key[]> {
    return (await this.#server.call(api.operations.list_keys)).data;
  }

  /** Creates a key. Only this answer has its `secret`. A quota of `null` has no limit. */
  createKey(name: string, options: Options<Omit<api.KeyRequest, "name">> = {}): Promise<api.NewKey> {
    return this.#server.call(api.operations.create_key, { value: { name, ...fields(options) } });
  }

  /** Revokes a key. Its sessions and files remain until they expire. */
  revokeKey(id: string): Promise<api.Key> {
    return this.#server.call(api.operations.revoke_key, { names: { id } });
  }

  /** Version, pool, images and builds of the server. */
  server(): Promise<api.Server> {
    return this.#server.call(api.operations.get_server);
  }

  /** Backends that the server's machine can run. */
  async backends(): Promise<api.Backend[]> {
    return (await this.#server.call(api.operations.list_backends)).data;
  }

  /** Runs a program in a new sandbox, which is destroyed before the answer. Files are base64 by name; `timeout` is in seconds. */
  execute(
    code: string,
    options: { files?: Record<string, string>; requirements?: string[]; timeout?: number } = {},
  ): Promise<api.ExecuteAnswer> {
    const { timeout, ...rest } = options;
    return this.#server.call(api.operations.execute, { value: { code, ...fields({ ...rest, timeoutSeconds: timeout }) } });
  }
}

function upload(source: Uint8Array | Record<string, string | Uint8Array>): FormData {
  const form = new FormData();
  if (source instanceof Uint8Array) {
    form.append("files", new Blob([source as Uint8Array<ArrayBuffer>]), "skill.zip");
  } else {
    for (const [path, content] of Object.entries(source)) form.append("files[]", new Blob([content as string]), path);
  }
  return form;
}
