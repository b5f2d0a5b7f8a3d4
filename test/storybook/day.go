package storybook

// day has no samples yet.
func day() any { return nil }
