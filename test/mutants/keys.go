package main

// keysTable breaks the rules of the container's partition key.
func keysTable() []mutant {
	const (
		pkg    = "internal/cosmos"
		key    = pkg + "/key.go"
		commit = "internal/commit"
		cases  = "TestPartitionKeyCases/"
	)
	return []mutant{
		{"a 404 is believed without a look by id", key, "case !gone || key.isID():", "case true:", pkg, cases + "a_document_moved_between_read_and_patch"},
		{"a rewritten key is not looked up", key, "\t\t\tlook = true\n", "\t\t\treturn called\n", pkg, cases + "a_key_that_the_host_has_rewritten"},
		{"a key is kept over a container that was made anew", key, "case key.text != before.text:", "case key.text != before.text && false:", pkg, cases + "a_container_made_anew_with_more_levels"},
		{"a definition that cannot be used is kept", key, "\t\ts.key.Store(nil)\n\t\treturn k, err\n", "\t\treturn k, nil\n", pkg, cases + "a_container_made_anew_with_a_key_that_cannot_be_used,_and_then_with_a_good_one"},
		{"/id is taken for granted where the definition is unknown", key, "\tk, _, err := c.readDefinition(ctx)\n\treturn k, err\n", "\treturn partitionKey{paths: [][]string{{\"id\"}}}, nil\n", pkg, cases + "a_definition_that_cannot_be_read_at_the_first_call"},
		{"any of two documents with one id is read", key, "case len(found) > 1:", "case len(found) > 2:", pkg, "TestKeyedDocuments"},
		{"submit makes a second document with an id", pkg + "/documents.go", "if !sameKey(k, own) {", "if false {", pkg, cases + "submit_never_makes_a_second_document_with_an_id"},
		{"an absent member is null", key, `json.RawMessage("{}")`, `json.RawMessage("null")`, pkg, cases + "each_value_of_a_key,_and_an_absent_one"},
		{"a number is sent as it is written", key, "value = double", "_ = double", pkg, "TestTheHeaderOfAPartitionKey"},
		{"a key that the app writes is accepted", key, `case path[0] == "sql_writer":`, "case false:", pkg, "TestPartitionKeysThatAreRefused"},
		{"a container of the app may have another key", key, "case mustBeID && !k.isID():", "case false:", pkg, cases + "a_key_that_cannot_be_used"},
		{"a projection is recorded", pkg + "/documents.go", "\tif doc.JSON() == nil {", "\tif false {", pkg, cases + "a_projection_cannot_be_recorded"},
		{"twins of a batch are written", commit + "/select.go", "n[d.ID] > 1", "n[d.ID] > 2", commit, "TestTwinsAreNamedAndNeitherIsWrittenOnEachWayIntoABatch"},
		{"a twin is read in place of a document", commit + "/refresh.go", "\t\tfresh[d.Identity()] = d\n", "\t\tfresh[d.Identity()] = d\n\t\tfor i := range fresh {\n\t\t\tfresh[i] = d\n\t\t}\n", commit, "TestATwinIsNotReadInPlaceOfADocument"},
		{"twins that are read again are written", commit + "/refresh.go", "\t\t\tnow.Problem = w.doc.Problem\n", "", commit, "TestTwinsAreNamedAndNeitherIsWrittenOnEachWayIntoABatch"},
		{"a twin of another environment keeps a document from its end", commit + "/reread.go", "d.Identity() == was.Identity()", "false", commit, "TestATwinOfAnotherEnvironmentKeepsNoDocumentFromItsEnd"},
		{"a twin is given up", commit + "/poison.go", "case fault.CodeOf(w.cause) == CodeIDTwice:", "case false:", commit, "TestATwinIsNeverGivenUpAndGoesOnWhenItIsAlone"},
	}
}
