//! Guesses the provider of a model from names.

/// Programs that use only one provider.
const PROGRAMS: [(&str, &str); 7] = [
    ("claude", "anthropic"),
    ("codex", "openai"),
    ("gemini", "google"),
    ("cursor-agent", "cursor"),
    ("copilot", "github"),
    ("qwen", "alibaba"),
    ("amp", "sourcegraph"),
];

/// Prefixes of models that identify the provider.
const MODELS: [(&str, &str); 10] = [
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "google"),
    ("qwen", "alibaba"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
];

/// The provider of `model` if `program` uses it. A model may name its provider itself, as in `anthropic/sonnet`.
#[must_use]
pub fn provider_of(program: &str, model: Option<&str>) -> Option<String> {
    let named = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider.to_owned());
    let program = program.rsplit('/').next().unwrap_or(program);
    let by_program = || PROGRAMS.iter().find(|(name, _)| *name == program).map(|(_, provider)| *provider);
    let by_model = || {
        MODELS.iter().find(|(start, _)| model.is_some_and(|model| model.starts_with(start))).map(|(_, p)| *p)
    };
    named.filter(|name| !name.is_empty()).or_else(|| by_program().or_else(by_model).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_told_by_the_model_or_the_program() {
        let table = [
            ("claude", None, Some("anthropic")),
            ("/usr/bin/codex", Some("gpt-5"), Some("openai")),
            ("opencode", Some("scripted/m"), Some("scripted")),
            ("opencode", Some("claude-sonnet-4"), Some("anthropic")),
            ("robot", Some("o3-mini"), Some("openai")),
            ("robot", Some("own"), None),
            ("robot", None, None),
        ];
        for (program, model, expected) in table {
            assert_eq!(provider_of(program, model).as_deref(), expected, "{program} {model:?}");
        }
    }
}
