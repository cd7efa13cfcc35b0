//! Generated code is committed. Here it is made again and must be the same; `UPDATE_GOLDEN=1` rewrites it.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use prost::Message;

fn generate(out: &Path) {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let compiler = |source_info: bool| {
        let mut compiler = protox::Compiler::new([&proto]).unwrap();
        compiler.include_source_info(source_info).include_imports(true);
        compiler.open_file("scarpenter/provider/v1/provider.proto").unwrap();
        compiler.file_descriptor_set()
    };
    tonic_prost_build::configure()
        .out_dir(out)
        .emit_rerun_if_changed(false)
        .btree_map(".")
        .skip_debug([".scarpenter.provider.v1.CreateMachineRequest"])
        .compile_fds(compiler(true))
        .unwrap();
    std::fs::write(out.join("descriptors.bin"), compiler(false).encode_to_vec()).unwrap();
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pb")
}

#[test]
fn the_committed_code_is_what_the_contract_generates() {
    let fresh = tempfile::tempdir().unwrap();
    generate(fresh.path());
    for file in ["scarpenter.provider.v1.rs", "descriptors.bin"] {
        let made = std::fs::read(fresh.path().join(file)).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(committed().join(file), &made).unwrap();
        }
        let kept = std::fs::read(committed().join(file)).unwrap_or_default();
        assert!(made == kept, "{file} is not what proto/ generates; UPDATE_GOLDEN=1 rewrites it");
    }
}
