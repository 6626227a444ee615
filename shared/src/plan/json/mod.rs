//! JSON plans: strict JSON, every value with its place.

mod fields;
mod form;
mod kinship;
mod node;
mod taskmaster;
mod tree;

#[cfg(test)]
mod tests;

pub use form::TreeDocument;

use jsonc_parser::{CollectOptions, ParseOptions, ast::Value, parse_to_ast};

use super::{
    Plan, PlanError,
    assemble::wrong,
    text::{Offset, SpecFile},
};

/// Reads any kind of JSON plan that we know.
pub(super) fn read(file: SpecFile<'_>) -> Result<Plan, PlanError> {
    let start = file.content_start();
    let value = parse(&file.text[start..]).map_err(|(at, what)| {
        let fix = match text_of(&file, start).trim().is_empty() {
            true => "write a plan, or create it with: git arborist plan tasks.md -o task-tree.json",
            false => "correct the JSON at this place",
        };
        wrong(std::slice::from_ref(&file), vec![file.problem(start + at, what, fix)], Vec::new())
    })?;
    match taskmaster::find_list(&value) {
        Some(list) if !has_nodes(&value) => taskmaster::read(file, list, start),
        _ => tree::read(file, &value, start),
    }
}

fn text_of<'a>(file: &'a SpecFile<'_>, start: Offset) -> &'a str {
    &file.text[start..]
}

fn has_nodes(value: &Value<'_>) -> bool {
    value.as_object().is_some_and(|object| object.get("nodes").is_some())
}

/// Strict JSON as a tree of values with byte ranges, or where and why it is none.
fn parse(text: &str) -> Result<Value<'_>, (Offset, String)> {
    let strict = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &strict) {
        Ok(parsed) => parsed.value.ok_or_else(|| (0, "the file is empty".into())),
        Err(error) => Err((error.range().start, sentence(&error.kind().to_string()))),
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    format!("this is not valid JSON: {first}{}", chars.as_str())
}
