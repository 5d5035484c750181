#!/bin/sh
# The cargo in TF_PLUGIN_TEST_CARGO. In the workspace, dependencies of what it builds have the features that they have in
# `cargo test --workspace`, which has built them: see tests/features.
command=$1
shift
unset CARGO
case $command in
build | test) [ ! -d tests/features ] || set -- --package tf-plugin-features --features tf-plugin-features/workspace "$@" ;;
esac
exec "$TF_PLUGIN_TEST_CARGO" "$command" "$@"
