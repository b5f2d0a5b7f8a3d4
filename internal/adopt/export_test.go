package adopt

// Limited makes the windows of an Adoption smaller.
func Limited(a *Adoption, few, most int) *Adoption {
	a.few, a.most = few, most
	return a
}
