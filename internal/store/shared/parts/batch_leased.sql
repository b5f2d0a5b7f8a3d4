WHERE batch_id = @batch AND owner = @owner AND epoch = @epoch AND status = 'processing';
