WHERE run_id = @run AND owner = @owner AND epoch = @epoch AND status = 'running';
