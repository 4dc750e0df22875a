// SPDX-License-Identifier: MIT
//! The attribute of the crate `haft`, where it is documented.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

fn error(text: &str) -> TokenStream {
    format!("::core::compile_error!({text:?});")
        .parse()
        .expect("it is Rust")
}

/// `seeds = 20`, or nothing.
fn seeds_of(attribute: TokenStream) -> Option<String> {
    let tokens: Vec<String> = attribute.into_iter().map(|t| t.to_string()).collect();
    match tokens.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some("::haft::__test::SEEDS".to_owned()),
        ["seeds", "=", count] => Some(count.to_owned()),
        _ => None,
    }
}

#[doc(hidden)]
#[proc_macro_attribute]
pub fn test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let Some(seeds) = seeds_of(attribute) else {
        return error("the attribute is #[haft::test], or #[haft::test(seeds = 20)]");
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
            result @ ..,
            _,
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
    outer.extend(result.iter().cloned());
    let mut body: TokenStream = tokens[start..].iter().cloned().collect();
    let call = format!(
        "::haft::__test::run(::core::concat!(::core::module_path!(), \"::{name}\"), {seeds}, {name})"
    );
    body.extend(call.parse::<TokenStream>());
    outer.extend([TokenTree::Group(Group::new(Delimiter::Brace, body))]);
    outer
}
