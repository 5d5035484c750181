"""Builds the plugin with cargo and puts it into the wheel."""

import json
import pathlib
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = pathlib.Path(__file__).resolve().parent


def cargo(*arguments):
    try:
        return subprocess.run(["cargo", *arguments], cwd=HERE, check=True, stdout=subprocess.PIPE).stdout
    except FileNotFoundError:
        raise SystemExit("cargo is not on the PATH; install Rust with rustup") from None


def cargo_version():
    metadata = json.loads(cargo("metadata", "--no-deps", "--format-version=1"))
    return next(p["version"] for p in metadata["packages"] if pathlib.Path(p["manifest_path"]).parent == HERE)


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        # The profile's own optimisation needs the shared library alone.
        build = ["rustc", "--profile=dist-small", "--lib", "--crate-type=cdylib"]
        messages = cargo(*build, "--message-format=json-render-diagnostics").splitlines()
        artifacts = [m for m in map(json.loads, messages) if m["reason"] == "compiler-artifact"]
        library = next(
            name
            for artifact in reversed(artifacts)
            if "cdylib" in artifact["target"]["crate_types"]
            for name in artifact["filenames"]
            if name.endswith((".so", ".dylib", ".dll"))
        )
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][library] = f"tensorflow-plugins/{pathlib.Path(library).name}"
