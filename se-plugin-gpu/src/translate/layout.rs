//! Checks that push constants are where GLSL has them.
//!
//! GLSL's layout `scalar` puts a vector at any multiple of its numbers' size, and a member behind a struct right behind that
//! struct's last member. In C++ and in OpenCL C a vector is aligned to all of it, and a struct is padded at its end.

use super::{Source, source};
use se_plugin::{Error, Result};
use std::collections::HashMap;

/// Bytes of a type and what they are aligned to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    size: usize,
    align: usize,
}

/// A type in GLSL, and in the languages that have C's layout.
#[derive(Clone, Copy)]
struct Type {
    glsl: Place,
    c: Place,
}

impl Type {
    fn vector(number: usize, count: usize) -> Self {
        let size = number * count;
        Self { glsl: Place { size, align: number }, c: Place { size, align: size } }
    }

    /// Returns the type of these names, and of those of structs that were found.
    fn named(name: &str, structs: &HashMap<&str, Self>) -> Option<Self> {
        Some(match name {
            "int" | "uint" | "float" => Self::vector(4, 1),
            "int64_t" | "uint64_t" => Self::vector(8, 1),
            "uvec2" | "vec2" => Self::vector(4, 2),
            "uvec4" | "vec4" => Self::vector(4, 4),
            _ => *structs.get(name)?,
        })
    }

    /// Returns the type of an array. Its elements must be as far apart in all languages.
    fn array(self, count: usize) -> Option<Self> {
        let stride = [self.glsl, self.c].map(|place| place.size.next_multiple_of(place.align));
        (count == 1 || stride[0] == stride[1]).then_some(())?;
        let all = |place: Place| {
            let before = count.checked_sub(1)?.checked_mul(stride[1])?;
            Some(Place { size: before.checked_add(place.size)?, ..place })
        };
        Some(Self { glsl: all(self.glsl)?, c: all(self.c)? })
    }
}

/// Returns the type that has these members.
///
/// # Errors
/// The member that is at different places, or is not understood.
fn of_members<'a>(members: &'a str, structs: &HashMap<&str, Type>) -> Result<Type, &'a str> {
    let mut all = [Place { size: 0, align: 1 }; 2];
    for declaration in members.split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let (kind, names) = declaration.split_once(char::is_whitespace).ok_or(declaration)?;
        let kind = Type::named(kind, structs).ok_or(declaration)?;
        for name in names.split(',').map(str::trim) {
            let member = match name.split_once('[') {
                Some((_, count)) => {
                    let count = count.strip_suffix(']').and_then(|count| count.trim().parse().ok());
                    count.and_then(|count| kind.array(count)).ok_or(declaration)?
                }
                None => kind,
            };
            let [glsl, c] = &mut all;
            let mut starts = [0; 2];
            for (at, (place, member)) in
                [(glsl, member.glsl), (c, member.c)].into_iter().enumerate()
            {
                starts[at] = place.size.next_multiple_of(member.align);
                *place =
                    Place { size: starts[at] + member.size, align: place.align.max(member.align) };
            }
            if starts[0] != starts[1] {
                return Err(declaration);
            }
        }
    }
    let [glsl, mut c] = all;
    c.size = c.size.next_multiple_of(c.align);
    Ok(Type { glsl, c })
}

/// Returns a text without comments, and those of the files that it includes.
fn texts(text: &str, all: &mut Vec<String>) -> Result<()> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let lines: Vec<_> = lines.collect();
    for line in &lines {
        let file = line.trim_start().strip_prefix("#include \"");
        if let Some(file) = file.and_then(|rest| rest.trim_end().strip_suffix('"')) {
            texts(source(file)?, all)?;
        }
    }
    all.push(lines.join("\n"));
    Ok(())
}

/// Returns the names and members of the structs in a text.
fn structs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let starts = text.match_indices("struct ").map(|(at, start)| &text[at + start.len()..]);
    starts.filter_map(|rest| {
        let (name, rest) = rest.split_once('{')?;
        Some((name.trim(), rest.split_once('}')?.0))
    })
}

/// Checks the push constants of a program.
///
/// # Errors
/// `INVALID_ARGUMENT` for a member that other languages would have at another place than GLSL, or that is not understood.
pub(super) fn check(program: &Source) -> Result<()> {
    let mut all = Vec::new();
    texts(program.text, &mut all)?;
    let mut known = HashMap::new();
    for (name, members) in all.iter().flat_map(|text| structs(text)) {
        // One that has other members than push constants can have is for the program itself.
        if let Ok(members) = of_members(members, &known) {
            known.insert(name, members);
        }
    }
    let push = all.iter().find_map(|text| text.split_once("uniform Push"));
    let members = push.and_then(|(_, rest)| rest.split_once('{')?.1.split_once('}'));
    let Some((members, _)) = members else { return Ok(()) };
    of_members(members, &known).map(drop).map_err(|member| {
        Error::invalid_argument(format!(
            "`{}` has push constants whose place differs between GLSL and C: `{member}`; put vectors where their offset is a \
             multiple of their size, and write the lengths of arrays as numbers",
            program.file
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &'static str) -> Result<()> {
        check(&Source::new("own", text))
    }

    #[test]
    fn push_constants_are_where_glsl_has_them() {
        for same in [
            "layout(push_constant, scalar) uniform Push { uint64_t a, b; uint n; float x; uvec2 size; vec4 y; } push;",
            "struct Axis { uint len; int a, b; };\nlayout(push_constant, scalar) uniform Push { uint64_t a; uint n; Axis axes[9]; uint m; } push;",
            "layout(push_constant, scalar) uniform Push { uint words[32]; } push;",
            "// uniform Push { uint n; uvec2 size; }\nvoid main() {}",
            "struct Own { COMPUTE x; };\nlayout(push_constant, scalar) uniform Push { uint64_t a; } push;",
        ] {
            assert!(checked(same).is_ok(), "{same}: {:?}", checked(same));
        }
    }

    #[test]
    fn other_places_are_an_error_that_names_the_member() {
        for (other, member) in [
            ("uniform Push { uint64_t a; uint n; uvec2 size; } push;", "uvec2 size"),
            ("uniform Push { uint64_t a; vec4 x; } push;", "vec4 x"),
            ("uniform Push { uint64_t a; uint n; float x, y; vec2 z, w; } push;", "vec2 z, w"),
            // Behind a struct there are four bytes of padding in C, and between its copies, too.
            ("struct S { uint64_t a; uint n; };\nuniform Push { S s; uint m; } push;", "uint m"),
            ("struct S { uint n; vec2 z; };\nuniform Push { S s; } push;", "S s"),
            ("uniform Push { vec3 x; } push;", "vec3 x"),
            ("const uint N = 2;\nuniform Push { uint x[N]; } push;", "uint x[N]"),
        ] {
            let error = checked(other).unwrap_err();
            assert_eq!(error.code(), se_plugin::Code::InvalidArgument);
            let text = error.to_string();
            let named = format!(
                "`own` has push constants whose place differs between GLSL and C: `{member}`; "
            );
            assert!(text.contains(&named), "{other}: {text}");
        }
    }
}
