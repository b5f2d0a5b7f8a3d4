package adopt

// Limited sets the bounds of an Adoption's windows.
func Limited(a *Adoption, few, most int) *Adoption {
	a.minDocuments, a.maxDocuments = few, most
	return a
}
