// SPDX-License-Identifier: MIT
//! The attribute of the crate `haft`, where it is documented.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

fn error(text: &str) -> TokenStream {
    format!("::core::compile_error!({text:?});")
        .parse()
        .expect("it is Rust")
}

/// The options of the attribute, as source text: how many seeds, and the simulation.
fn options_of(attribute: TokenStream) -> Option<(String, String)> {
    let mut seeds = "::haft::__test::SEEDS".to_owned();
    let mut simulation = "::haft::Simulation::new()".to_owned();
    let tokens: Vec<String> = attribute.into_iter().map(|t| t.to_string()).collect();
    for option in tokens.split(|token| token == ",") {
        match option.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => {}
            ["seeds", "=", count] => seeds = count.to_owned(),
            ["short_counts"] => simulation += ".short_counts(true)",
            [
                name @ ("network" | "files"),
                "=",
                value @ ("true" | "false"),
            ] => {
                simulation += &format!(".{name}({value})");
            }
            [name @ ("faults_one_in" | "switches_one_in"), "=", count] => {
                simulation += &format!(".{name}({count})");
            }
            _ => return None,
        }
    }
    Some((seeds, simulation))
}

#[doc(hidden)]
#[proc_macro_attribute]
pub fn test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let Some((seeds, simulation)) = options_of(attribute) else {
        return error(
            "the attribute is #[haft::test], or #[haft::test(seeds = 20, short_counts, \
             faults_one_in = 10, switches_one_in = 2, network = false, files = false)]",
        );
    };
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let is_fn =
        |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let start = tokens.iter().position(is_fn);
    let Some((
        start,
        [
            TokenTree::Ident(name),
            TokenTree::Group(parameters),
            ..,
            _body,
        ],
    )) = start.map(|at| (at, &tokens[at + 1..]))
    else {
        return error("#[haft::test] stands before a function");
    };
    let takes_nothing =
        parameters.delimiter() == Delimiter::Parenthesis && parameters.stream().is_empty();
    if !takes_nothing {
        return error("a test has no parameters");
    }
    // The function itself goes into one that runs it.
    let mut outer: TokenStream = "#[::core::prelude::v1::test]".parse().expect("it is Rust");
    outer.extend(tokens[..start].iter().cloned());
    outer.extend(format!("fn {name}()").parse::<TokenStream>());
    let mut body: TokenStream = tokens[start..].iter().cloned().collect();
    let call = format!(
        "::haft::__test::run(::core::concat!(::core::module_path!(), \"::{name}\"), {seeds}, \
         &{simulation}, {name})"
    );
    body.extend(call.parse::<TokenStream>());
    outer.extend([TokenTree::Group(Group::new(Delimiter::Brace, body))]);
    outer
}
