package adopt

// Limited sets the bounds of an Adoption's windows.
func Limited(a *Adoption, few, most int) *Adoption {
	a.few, a.most = few, most
	return a
}
