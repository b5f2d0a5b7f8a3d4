WHERE job_id = @job AND owner = @owner AND epoch = @epoch AND status = 'processing';
