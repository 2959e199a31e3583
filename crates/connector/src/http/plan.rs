//! Functions over HTTP, compiled from their options.

use std::collections::{BTreeMap, HashSet};

use cellblock_interpreter::connector::{Card, FetchEffect};
use http::{HeaderName, HeaderValue, Method};
use indexmap::IndexMap;
use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use super::options::{HttpFunction, PageOptions, RequestOptions};
use crate::card;
use crate::recipe::OptionMistake;
use crate::rows::{RowPlan, json_path};
use crate::sent::{RequestParameter, SentAs};
use crate::template::Template;

/// Headers that are always set here.
const OWN: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A function.
#[derive(Debug)]
pub(crate) struct HttpOperation {
    pub(super) card: Card,
    pub(super) method: Method,
    pub(super) path: Template,
    pub(super) query: Vec<(String, Template)>,
    pub(super) headers: Vec<(HeaderName, Template)>,
    /// Parameters that no template inserts.
    pub(super) sent: Vec<RequestParameter>,
    /// Whether a request has a JSON object as its body, if it has no other.
    pub(super) has_body: bool,
    pub(super) rows: Option<RowPlan>,
    pub(super) pages: Option<PagePlan>,
}

/// Plan for finding the next page.
#[derive(Debug)]
pub(super) struct PagePlan {
    pub(super) next: JsonPath,
    pub(super) parameter: Option<String>,
    pub(super) most: u32,
}

impl HttpOperation {
    pub(super) fn reads(&self) -> bool {
        self.card.effect == FetchEffect::Reads
    }

    /// Compiles a function; mistakes have paths within it. `secrets` are those that the connector
    /// has. Without `sent`, parameters that no template inserts are in the query, or in the body if
    /// the method has one.
    pub(crate) fn new(
        name: &str,
        options: &HttpFunction,
        sent: Option<Vec<RequestParameter>>,
        connector: &RequestOptions,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Self, Vec<OptionMistake>> {
        let mut compiling = PlanCompiler {
            parameters: &options.parameters,
            secrets,
            used: HashSet::new(),
            mistakes: Vec::new(),
        };
        let request = compiling.request(options);
        let effect = compiling.effect(options, connector.allow_writes, request.as_ref());
        let query = compiling.templates("query", &connector.query, &options.query);
        let headers = compiling.headers(&connector.headers, &options.headers);
        compiling.mistakes.extend(card::mistakes(&options.parameters));
        let usual = request
            .as_ref()
            .is_some_and(|(method, _)| matches!(*method, Method::POST | Method::PUT | Method::PATCH));
        let has_body = match &sent {
            None => usual,
            Some(sent) => sent.iter().any(|it| it.form == SentAs::Field),
        };
        let sent = sent.unwrap_or_else(|| compiling.others(usual));
        for RequestParameter {
            parameter,
            name,
            form,
        } in &sent
        {
            if matches!(form, SentAs::Query(_)) && query.iter().any(|(other, _)| other == name) {
                let text = format!(
                    "is also set in `query`; insert it there as `{{{{ parameters.{parameter} }}}}`, or \
                     rename one of the two"
                );
                compiling.wrong(&["parameters", parameter], text);
            }
        }
        let rows = options.result.as_ref().and_then(|result| {
            let plan = RowPlan::new(result);
            plan.map_err(|mistakes| compiling.nested("result", mistakes)).ok()
        });
        let pages = options
            .pages
            .as_ref()
            .and_then(|pages| compiling.pages(pages, options));
        match request {
            Some((method, path)) if compiling.mistakes.is_empty() => Ok(Self {
                card: card::card(name, &options.description, &options.parameters, effect),
                method,
                path,
                query,
                headers,
                sent,
                has_body,
                rows,
                pages,
            }),
            _ => Err(compiling.mistakes),
        }
    }
}

struct PlanCompiler<'a> {
    parameters: &'a IndexMap<String, Value>,
    secrets: &'a BTreeMap<String, String>,
    /// Parameters that a template inserts.
    used: HashSet<String>,
    mistakes: Vec<OptionMistake>,
}

impl PlanCompiler<'_> {
    fn wrong(&mut self, path: &[&str], message: impl Into<String>) {
        self.mistakes.push(OptionMistake::new(path, message));
    }

    fn nested(&mut self, key: &str, mistakes: Vec<OptionMistake>) {
        self.mistakes
            .extend(mistakes.into_iter().map(|mistake| mistake.within(&[key])));
    }

    /// Returns where parameters are sent that no template inserts.
    fn others(&self, has_body: bool) -> Vec<RequestParameter> {
        let others = self.parameters.keys().filter(|name| !self.used.contains(*name));
        let form = if has_body {
            SentAs::Field
        } else {
            SentAs::Query(None)
        };
        let sent = others.map(|name| RequestParameter {
            parameter: name.clone(),
            name: name.clone(),
            form,
        });
        sent.collect()
    }

    fn request(&mut self, options: &HttpFunction) -> Option<(Method, Template)> {
        let mut written = [
            ("get", Method::GET, &options.get),
            ("post", Method::POST, &options.post),
            ("put", Method::PUT, &options.put),
            ("patch", Method::PATCH, &options.patch),
            ("delete", Method::DELETE, &options.delete),
        ]
        .into_iter()
        .filter_map(|(key, method, path)| Some((key, method, path.as_ref()?)));
        let Some((key, method, path)) = written.next() else {
            self.wrong(
                &[],
                "missing key `get`, the path of the request, such as `/series/{id}`",
            );
            return None;
        };
        if let Some((other, ..)) = written.next() {
            self.wrong(
                &[other],
                format!("cannot be combined with `{key}`; remove one of the two"),
            );
        }
        let path = Template::path(path)
            .map_err(|error| self.wrong(&[key], error))
            .ok()?;
        self.uses(&[key], &path);
        Some((method, path))
    }

    fn effect(
        &mut self,
        options: &HttpFunction,
        allowed: bool,
        request: Option<&(Method, Template)>,
    ) -> FetchEffect {
        let is_get = request.is_none_or(|(method, _)| *method == Method::GET);
        let usual = if is_get {
            FetchEffect::Reads
        } else {
            FetchEffect::Writes
        };
        let effect = options.effect.unwrap_or(usual);
        if effect == FetchEffect::Writes && !allowed {
            let text = match options.effect {
                Some(_) => "`writes` needs `allow_writes: true` in the connector",
                None => {
                    "requests other than GET may change something: write `effect: reads` if this one does \
                     not, or `allow_writes: true` in the connector"
                }
            };
            let path: &[&str] = if options.effect.is_some() {
                &["effect"]
            } else {
                &[]
            };
            self.wrong(path, text);
        }
        effect
    }

    /// Reads templates of the connector and of the function, which replace those.
    fn templates(
        &mut self,
        key: &str,
        shared: &IndexMap<String, String>,
        own: &IndexMap<String, String>,
    ) -> Vec<(String, Template)> {
        let mut templates: IndexMap<String, Template> = IndexMap::new();
        for (name, text) in shared {
            // Mistakes in these are reported for the connector.
            if let Ok(template) = Template::new(text) {
                templates.insert(name.clone(), template);
            }
        }
        for (name, text) in own {
            match Template::new(text) {
                Ok(template) => drop(templates.insert(name.clone(), template)),
                Err(error) => self.wrong(&[key, name], error),
            }
        }
        let mut read = Vec::new();
        for (name, template) in templates {
            self.uses(&[key, &name], &template);
            let secrets = self.secrets;
            let template = template.with_secrets(|name| secrets.get(name).cloned().unwrap_or_default());
            read.push((name, template));
        }
        read
    }

    fn headers(
        &mut self,
        shared: &IndexMap<String, String>,
        own: &IndexMap<String, String>,
    ) -> Vec<(HeaderName, Template)> {
        let mut headers = Vec::new();
        for (name, template) in self.templates("headers", shared, own) {
            let Ok(parsed) = name.parse::<HeaderName>() else {
                self.wrong(&["headers", &name], "is not a valid header name");
                continue;
            };
            let fixed = template.parameters().next().is_none();
            let text = template.text(&Map::new()).unwrap_or_default();
            if OWN.contains(&parsed.as_str()) || parsed.as_str().starts_with("proxy-") {
                self.wrong(&["headers", &name], "is set automatically; remove it");
            } else if fixed && HeaderValue::from_str(&text).is_err() {
                let text = "has a value with characters that are invalid in a header";
                self.wrong(&["headers", &name], text);
            } else {
                headers.push((parsed, template));
            }
        }
        headers
    }

    /// Records what a template inserts, and checks that it exists.
    fn uses(&mut self, path: &[&str], template: &Template) {
        for name in template.parameters() {
            self.used.insert(name.to_owned());
            if !self.parameters.contains_key(name) {
                self.wrong(path, format!("inserts `{name}`, which is not in `parameters`"));
            }
        }
        for name in template.secrets() {
            if !self.secrets.contains_key(name) {
                self.wrong(
                    path,
                    format!("inserts `{name}`, which is not in the connector's `secrets`"),
                );
            }
        }
    }

    fn pages(&mut self, pages: &PageOptions, options: &HttpFunction) -> Option<PagePlan> {
        if options.get.is_none() {
            self.wrong(&["pages"], "is for GET requests; remove it");
        }
        if options.result.is_none() {
            self.wrong(
                &["pages"],
                "needs `result`, because the rows of all pages become one answer",
            );
        }
        if !(1..=1000).contains(&pages.most) {
            self.wrong(&["pages", "most"], "must be from 1 to 1000");
        }
        let next = json_path(&pages.next);
        let next = next.map_err(|error| self.wrong(&["pages", "next"], error)).ok()?;
        Some(PagePlan {
            next,
            parameter: pages.parameter.clone(),
            most: pages.most,
        })
    }
}
