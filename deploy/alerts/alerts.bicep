// Makes the alert rules of this folder on an Application Insights resource.
//   az deployment group create --resource-group GROUP --template-file deploy/alerts/alerts.bicep \
//     --parameters insights=RESOURCE_ID wake=ACTION_GROUP_ID tell=ACTION_GROUP_ID
// A test holds that each query is listed here with the period and interval of its header.

@description('Resource id of Application Insights.')
param insights string
@description('Resource id of the action group that wakes somebody.')
param wake string
@description('Resource id of the action group that tells somebody during the day.')
param tell string
param location string = resourceGroup().location
@description('Begins the names of the rules; one per environment.')
param prefix string = 'sqlwriter'

var rules = [
  { name: 'attention-wake', severity: 'wake', period: 'PT15M', every: 'PT5M', query: loadTextContent('attention.kql'), split: true }
  { name: 'attention-tell', severity: 'tell', period: 'PT15M', every: 'PT5M', query: loadTextContent('attention.kql'), split: true }
  { name: 'no-tick', severity: 'wake', period: 'P2D', every: 'PT5M', query: loadTextContent('no-tick.kql'), split: false }
  { name: 'handler-restarts', severity: 'wake', period: 'PT30M', every: 'PT5M', query: loadTextContent('handler-restarts.kql'), split: false }
]

resource alerts 'Microsoft.Insights/scheduledQueryRules@2022-06-15' = [for rule in rules: {
  name: '${prefix}-${rule.name}'
  location: location
  properties: {
    description: 'deploy/alerts/README.md; sqlwriterctl explain CONDITION says what to do'
    severity: rule.severity == 'wake' ? 1 : 3
    enabled: true
    scopes: [ insights ]
    evaluationFrequency: rule.every
    windowSize: rule.period
    criteria: {
      allOf: [
        {
          query: rule.query
          timeAggregation: 'Count'
          // A rule of attention.kql takes the rows of its severity, and makes an alert of each condition.
          dimensions: rule.split ? [
            { name: 'severity', operator: 'Include', values: [ rule.severity ] }
            { name: 'condition', operator: 'Include', values: [ '*' ] }
            { name: 'beginning', operator: 'Include', values: [ '*' ] }
          ] : []
          operator: 'GreaterThan'
          threshold: 0
          failingPeriods: { numberOfEvaluationPeriods: 1, minFailingPeriodsToAlert: 1 }
        }
      ]
    }
    autoMitigate: true
    actions: { actionGroups: [ rule.severity == 'wake' ? wake : tell ] }
  }
}]
