//! S3 as the engine uses it.

use crate::connection::Bucket;
use crate::get::{self, Body, Cause};
use crate::names::{self, NoPage};
use std::sync::Arc;
use tf_fs_object_store::{
    BucketPage, CopyOptions, GetOptions, Head, Known, Name, NotDeleted, ObjectStore, Page, Query,
    Settings, Source,
};
use tf_fs_plugin::prelude::*;

impl ObjectStore for Bucket {
    type Failure = Cause;
    type Body = Body;
    type NoPage = NoPage;

    const LIST: &'static str = "ListObjectsV2";

    fn settings(&self) -> &Settings {
        &self.settings.engine
    }

    fn endpoint(&self) -> String {
        self.route().map(|route| route.base.clone()).unwrap_or_default()
    }

    async fn get(&self, options: GetOptions<'_>, attempt: u32) -> Result<(Head, Body), Cause> {
        get::get(self, options, attempt).await
    }

    async fn list(&self, query: &Query, token: Option<&str>) -> Result<Page, NoPage> {
        names::page(self, query, token).await
    }

    async fn head(&self, name: &Name, refused: NoPage) -> Result<Option<Known>> {
        names::head(self, name, refused).await
    }

    async fn put_marker(&self, marker: &Name) -> Result<()> {
        names::put_marker(self, marker).await
    }

    async fn delete(&self, name: &Name) -> Result<()> {
        names::delete(self, name).await
    }

    fn deletes_together(&self, key: &str) -> bool {
        names::fits_xml(key)
    }

    async fn delete_many(
        &self,
        directory: &Name,
        keys: &[String],
    ) -> Option<Result<Vec<NotDeleted>>> {
        names::delete_many(self, directory, keys)
            .await
            .map_or_else(|error| error.map(Err), |left| Some(Ok(left)))
    }

    async fn list_buckets(&self, name: &Name, token: Option<&str>) -> Result<BucketPage> {
        names::list_buckets(self, name, token).await
    }

    async fn copy(
        from: &Arc<Self>,
        to: &Arc<Self>,
        options: CopyOptions<'_>,
    ) -> Result<(Source, Option<Known>)> {
        names::copy(from, to, options).await
    }
}
