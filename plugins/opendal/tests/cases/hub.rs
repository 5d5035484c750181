//! `hf://` and `webhdfs://` on servers with the APIs of the Hugging Face Hub and of HDFS: neither can run here. Clients of
//! others accept them.

use crate::common::{children, error, plugin, read, uri, write};
use file_servers::{Hub, Kind, Server, hdfs_client};
use tf_fs_plugin::prelude::*;

#[test]
fn the_hub_is_read_as_its_own_client_reads_it() {
    let hub = Hub::start();
    let large: Vec<u8> = (0..3 << 20).map(|at: u32| (at % 251) as u8).collect();
    hub.add(
        "datasets/o/n",
        "main",
        &[
            ("README.md", b"text", false),
            ("data/train 1.bin", &large, true),
            ("data/deep/f", b"x", false),
            ("empty", b"", false),
        ],
    );
    hub.add("o/m", "v1", &[("config.json", b"{}", false)]);
    // What it says is what Hugging Face's client expects.
    let said = hub.official(
        "print(sorted(fs.ls('datasets/o/n', detail=False)))
print(sorted(fs.ls('datasets/o/n/data', detail=False)), fs.info('datasets/o/n/data/train 1.bin')['size'])
with fs.open('datasets/o/n/data/train 1.bin') as f:
    f.seek(1000000)
    print(f.read(3).hex())
print(fs.cat_file('o/m@v1/config.json'), fs.exists('datasets/o/n/none'))",
    );
    let at = 1_000_000 % 251;
    let hex: String = (at..at + 3).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        said,
        format!(
            "['datasets/o/n/README.md', 'datasets/o/n/data', 'datasets/o/n/empty']\n\
             ['datasets/o/n/data/deep', 'datasets/o/n/data/train 1.bin'] 3145728\n{hex}\nb'{{}}' False\n"
        )
    );

    let fs = plugin(&[("hf_endpoint", &hub.endpoint()), ("read_part_bytes", "256KiB")]);
    assert_eq!(children(&fs, "hf://datasets/o/n").unwrap(), ["README.md", "data", "empty"]);
    assert_eq!(children(&fs, "hf://datasets/o/n/data").unwrap(), ["deep", "train 1.bin"]);
    assert!(read(&fs, "hf://datasets/o/n/data/train 1.bin").unwrap() == large);
    assert_eq!(read(&fs, "hf://datasets/o/n/README.md").unwrap(), b"text");
    assert_eq!(read(&fs, "hf://datasets/o/n/empty").unwrap(), b"");
    assert_eq!(read(&fs, "hf://o/m@v1/config.json").unwrap(), b"{}");
    assert!(fs.is_directory(uri("hf://datasets/o/n/data")).unwrap());
    assert!(!fs.path_exists(uri("hf://datasets/o/n/none")).unwrap());
    let found = fs.get_matching_paths(uri("hf://datasets/o/n/data/*.bin")).unwrap();
    assert_eq!(found.iter().collect::<Vec<_>>(), [b"hf://datasets/o/n/data/train 1.bin"]);
    for (name, code) in [
        ("hf://datasets/o/n/none", Code::NotFound),
        ("hf://datasets/o/other/f", Code::NotFound),
        ("hf://o/m@v2/config.json", Code::NotFound),
    ] {
        let (found, text) = error(read(&fs, name));
        assert_eq!(found, code, "{text}");
    }
    let (code, text) = error(write(&fs, "hf://datasets/o/n/new", b"x"));
    assert_eq!(code, Code::Unimplemented, "{text}");
}

#[test]
fn the_token_goes_to_the_hub_alone() {
    let hub = Hub::start();
    hub.add("o/private", "main", &[("f", &[7; 100_000], true)]);
    hub.protect("o/private", "hf_planted");
    let endpoint = hub.endpoint();
    let own = plugin(&[("hf_endpoint", &endpoint), ("hf_token", "hf_planted")]);
    assert_eq!(read(&own, "hf://o/private/f").unwrap(), [7; 100_000]);
    assert!(!hub.leaked(), "the server of the bytes got the token");
    for token in [&[][..], &[("hf_token", "hf_planted-wrong")]] {
        let fs = plugin(&[&[("hf_endpoint", &*endpoint)], token].concat());
        let (code, text) = error(read(&fs, "hf://o/private/f"));
        assert_eq!(code, Code::NotFound, "{text}");
        assert!(text.contains("HF_TOKEN") && !text.contains("planted"), "{text}");
    }
}

#[test]
fn hdfs_is_used_as_another_client_uses_it() {
    let server = Server::start(Kind::WebHdfs);
    // What it says is what that client expects.
    let said = hdfs_client(
        &server.host(),
        "client.makedirs('/a/b')
client.write('/a/b/f 1', data=b'bytes', overwrite=True)
client.write('/a/b/g', data=b'other', overwrite=True)
client.rename('/a/b/g', '/a/g')
print(client.list('/a'), client.status('/a/b/f 1')['length'], client.status('/none', strict=False))
with client.read('/a/b/f 1', offset=1, length=3) as reader:
    print(reader.read())
print(client.delete('/a/g'), client.delete('/a/g'))",
    );
    assert_eq!(said, "['b', 'g'] 5 None\nb'yte'\nTrue False\n");
    let fs = plugin(&[("remote.namenode:8020.url", &format!("http://{}/a", server.host()))]);
    assert_eq!(children(&fs, "hdfs://namenode:8020/b").unwrap(), ["f 1"]);
    assert_eq!(read(&fs, "hdfs://namenode:8020/b/f 1").unwrap(), b"bytes");
    write(&fs, "hdfs://namenode:8020/b/new", b"x").unwrap();
    assert_eq!(hdfs_client(&server.host(), "print(client.list('/a/b'))"), "['f 1', 'new']\n");
    let (code, text) = error(read(&fs, "hdfs://other:8020/f"));
    assert_eq!(code, Code::InvalidArgument, "{text}");
    assert!(text.contains("[remote.\"other:8020\"]"), "{text}");
}
