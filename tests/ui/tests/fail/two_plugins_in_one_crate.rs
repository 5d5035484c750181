//! A library has one `TF_InitPlugin`. `cargo check` finds it, wherever the two are.

mod a {
    use tf_fs_plugin::prelude::*;

    struct A;

    #[filesystem_plugin(scheme = "a1")]
    impl Filesystem for A {
        fn new(_: &str) -> Result<Self> {
            Ok(Self)
        }
    }
}

mod b {
    pub mod c {
        use tf_fs_plugin::prelude::*;

        struct B;

        #[filesystem_plugin(scheme = "b1")]
        impl Filesystem for B {
            fn new(_: &str) -> Result<Self> {
                Ok(Self)
            }
        }
    }
}

fn main() {}
