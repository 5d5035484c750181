//! Objects.

use super::*;

impl Service {
    pub(super) async fn get_object(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreRange>().is_some() {
            input.range = None;
        }
        let object = self.store.bucket(&input.bucket, |bucket| bucket.object(&input.key))?;
        conditions!(input).check(&object.info, false)?;
        let (range, partial) = selected(&object, input.range, input.part_number)?;
        let mut output = GetObjectOutput::default();
        describe!(output, &object.info);
        output.content_length = Some((range.end - range.start) as i64);
        if partial && !range.is_empty() {
            output.content_range = Some(content_range(&range, object.data.len()));
        }
        if input.part_number.is_some() && !object.info.parts.is_empty() {
            output.parts_count = Some(object.info.parts.len() as i32);
        }
        if input.checksum_mode.is_some() && range.end - range.start == object.data.len() {
            let (sums, kind) = checksums(&object.info);
            set_sums!(output, sums);
            output.checksum_type = kind;
        }
        output.body = Some(StreamingBlob::new(object.data.slice(range).stream()));
        Ok(S3Response::new(output))
    }

    pub(super) async fn head_object(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let habits = req.extensions.get::<&'static [Habit]>();
        let finds_markers = habits.is_some_and(|habits| habits.contains(&Habit::HeadOfMarker));
        let input = req.input;
        let object =
            self.store.bucket(&input.bucket, |bucket| match bucket.object(&input.key) {
                Err(_) if finds_markers => bucket.object(&format!("{}/", input.key)),
                found => found,
            })?;
        conditions!(input).check(&object.info, false)?;
        let (range, partial) = selected(&object, input.range, input.part_number)?;
        let mut output = HeadObjectOutput::default();
        describe!(output, &object.info);
        output.content_length = Some((range.end - range.start) as i64);
        if input.part_number.is_some() && !object.info.parts.is_empty() {
            output.parts_count = Some(object.info.parts.len() as i32);
        }
        if input.checksum_mode.is_some() {
            let (sums, kind) = checksums(&object.info);
            set_sums!(output, sums);
            output.checksum_type = kind;
        }
        let mut response = S3Response::new(output);
        if partial && !range.is_empty() {
            response.output.content_range = Some(content_range(&range, object.data.len()));
            response.status = Some(http::StatusCode::PARTIAL_CONTENT);
        }
        Ok(response)
    }

    pub(super) async fn put_object(
        &self,
        req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            (input.if_match, input.if_none_match) = (None, None);
        }
        self.store.bucket(&input.bucket, |_| Ok(()))?;
        if input.content_length.is_some_and(|len| len as u64 > MAX_SINGLE) {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size"
            ));
        }
        let body = input.body.take();
        let promise = Promise {
            content_md5: input.content_md5.as_deref(),
            sums: sums!(input),
            algorithm: input
                .checksum_algorithm
                .as_ref()
                .and_then(|name| Algorithm::named(name.as_str())),
            headers: &req.headers,
            trailers: req.trailing_headers,
        };
        let received = receive(body, promise, self.store.fast).await?;
        let mut info = info!(input);
        info.etag = self.store.etag(&received.data, received.md5);
        info.len = received.data.len();
        info.modified = Some(SystemTime::now());
        info.set_checksums(&received.sums, "FULL_OBJECT");
        let mut output = PutObjectOutput {
            e_tag: Some(strong(&info.etag)),
            server_side_encryption: info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: info.sse_kms_key_id.clone(),
            checksum_type: info.checksum_type.map(ChecksumType::from_static),
            ..Default::default()
        };
        set_sums!(output, received.sums);
        let stored = Arc::new(Stored { data: received.data, info });
        self.store.bucket(&input.bucket, |bucket| {
            bucket.may_write(&input.key, input.if_match.as_ref(), input.if_none_match.as_ref())?;
            bucket.objects.insert(input.key, stored);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    pub(super) async fn copy_object(
        &self,
        req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let mut input = req.input;
        if req.extensions.get::<IgnoreConditions>().is_some() {
            input.copy_source_if_match = None;
        }
        let source = self.source(&input.copy_source, &conditions!(input, copy))?;
        if source.data.len() > MAX_SINGLE {
            return Err(s3_error!(
                InvalidRequest,
                "The specified copy source is larger than the maximum allowable size for a copy source: {}",
                MAX_SINGLE
            ));
        }
        let replace = input
            .metadata_directive
            .as_ref()
            .is_some_and(|d| d.as_str() == MetadataDirective::REPLACE);
        let mut info = info!(input);
        if !replace {
            let CopySource::Bucket { bucket, key, .. } = &input.copy_source else {
                return Err(s3_error!(NotImplemented, "Access points are not implemented"));
            };
            let itself = **bucket == *input.bucket && **key == *input.key;
            if itself && info.storage_class.is_none() && info.sse.is_none() {
                return Err(s3_error!(
                    InvalidRequest,
                    "This copy request is illegal because it is trying to copy an object to itself without \
                     changing the object's metadata, storage class, website redirect location or encryption \
                     attributes."
                ));
            }
            info = Info {
                sse: info.sse,
                sse_kms_key_id: info.sse_kms_key_id,
                storage_class: info.storage_class,
                ..source.info.clone()
            };
        }
        // A copy is one object, also of a multipart upload: then its ETag is new.
        let same = source.info.parts.is_empty() && !self.store.fast;
        info.etag = if same { source.info.etag.clone() } else { self.copied(&source.data) };
        info.parts = Vec::new();
        info.len = source.data.len();
        info.modified = Some(SystemTime::now());
        if let Some(algorithm) =
            input.checksum_algorithm.as_ref().and_then(|name| Algorithm::named(name.as_str()))
        {
            info.checksums = BTreeMap::from([(algorithm.name(), algorithm.compute(&source.data))]);
            info.checksum_type = Some("FULL_OBJECT");
        } else if source.info.checksum_type == Some("COMPOSITE") {
            let sums = source.info.checksums.keys().filter_map(|name| Algorithm::named(name));
            info.checksums =
                sums.map(|algorithm| (algorithm.name(), algorithm.compute(&source.data))).collect();
            info.checksum_type = Some("FULL_OBJECT");
        } else {
            info.checksums = source.info.checksums.clone();
            info.checksum_type = source.info.checksum_type;
        }
        let mut result = CopyObjectResult {
            e_tag: Some(strong(&info.etag)),
            last_modified: info.modified.map(Timestamp::from),
            ..Default::default()
        };
        let (sums, kind) = checksums(&info);
        set_sums!(result, sums);
        result.checksum_type = kind;
        let output = CopyObjectOutput {
            copy_object_result: Some(result),
            server_side_encryption: info.sse.clone().map(ServerSideEncryption::from),
            ssekms_key_id: info.sse_kms_key_id.clone(),
            ..Default::default()
        };
        let stored = Arc::new(Stored { data: source.data.clone(), info });
        let condition = |name: &str| {
            let value = req
                .headers
                .get(name)
                .map(|value| ETagCondition::parse_http_header(value.as_bytes()));
            value.transpose().map_err(|_| s3_error!(InvalidArgument, "invalid header: {}", name))
        };
        let (if_match, if_none_match) = (condition("if-match")?, condition("if-none-match")?);
        self.store.bucket(&input.bucket, |bucket| {
            bucket.may_write(&input.key, if_match.as_ref(), if_none_match.as_ref())?;
            bucket.objects.insert(input.key, stored);
            Ok(())
        })?;
        Ok(S3Response::new(output))
    }

    pub(super) async fn delete_object(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = req.input;
        self.store.bucket(&input.bucket, |bucket| {
            if input.if_match.is_some() {
                bucket.may_write(&input.key, input.if_match.as_ref(), None)?;
            }
            bucket.objects.remove(&input.key);
            Ok(())
        })?;
        Ok(S3Response::with_status(DeleteObjectOutput::default(), http::StatusCode::NO_CONTENT))
    }

    pub(super) async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = req.input;
        if input.delete.objects.is_empty() || input.delete.objects.len() > PAGE {
            return Err(s3_error!(
                MalformedXML,
                "The XML you provided was not well-formed or did not validate"
            ));
        }
        // s3s requires the small body as a whole: only its length is left to check here.
        let quiet = input.delete.quiet.unwrap_or(false);
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        self.store.bucket(&input.bucket, |bucket| {
            for object in input.delete.objects {
                let condition = object.e_tag.map(ETagCondition::ETag);
                match bucket.may_write(&object.key, condition.as_ref(), None) {
                    Ok(()) => {
                        bucket.objects.remove(&object.key);
                        deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
                    }
                    Err(error) => errors.push(Error {
                        key: Some(object.key),
                        code: Some(error.code().as_str().to_owned()),
                        message: error.message().map(str::to_owned),
                        ..Default::default()
                    }),
                }
            }
            Ok(())
        })?;
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: (!quiet && !deleted.is_empty()).then_some(deleted),
            errors: (!errors.is_empty()).then_some(errors),
            ..Default::default()
        }))
    }
}
