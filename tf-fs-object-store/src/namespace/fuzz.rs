//! Patterns. `tests/fuzz` lists all targets.

use super::glob::{head, is_literal, unescape};
use tf_fs_plugin::glob;
use tf_plugin_fuzz::{fuzz, halves, text};

#[test]
fn patterns() {
    let words = ["*", "?", "[", "]", "[a-z]", "\\", "/", "é", "a", "\0", "part-"];
    fuzz!(words, |bytes| {
        let (pattern, name) = halves(bytes);
        let (pattern, name) = (text(pattern), text(name));
        let components = pattern.split('/');
        if components.clone().all(is_literal) {
            let names: Vec<String> = components.clone().map(unescape).collect();
            assert_eq!(unescape(&pattern), names.join("/"), "component by component");
        }
        for component in components {
            if glob::matches(component.as_bytes(), name.as_bytes()) {
                assert!(name.starts_with(&head(component)), "a listing below the head shows it");
            }
            if is_literal(component) {
                assert_eq!(unescape(component), head(component));
                assert!(glob::matches(component.as_bytes(), unescape(component).as_bytes()));
            }
        }
    });
}
