// Makes the alert rules of this folder on an Application Insights resource: one rule for each query.
//   az deployment group create --resource-group GROUP --template-file deploy/alerts/alerts.bicep \
//     --parameters insights=RESOURCE_ID wake=ACTION_GROUP_ID tell=ACTION_GROUP_ID
// A test holds that each query is listed here with the severity, period and interval of its header.

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
  { name: 'flow-stopped', severity: 'wake', period: 'PT30M', every: 'PT5M', query: loadTextContent('flow-stopped.kql') }
  { name: 'dependency-away', severity: 'wake', period: 'PT15M', every: 'PT5M', query: loadTextContent('dependency-away.kql') }
  { name: 'timer-silent', severity: 'wake', period: 'PT20M', every: 'PT5M', query: loadTextContent('timer-silent.kql') }
  { name: 'stuck-range', severity: 'wake', period: 'PT15M', every: 'PT5M', query: loadTextContent('stuck-range.kql') }
  { name: 'mass-failure', severity: 'wake', period: 'PT10M', every: 'PT5M', query: loadTextContent('mass-failure.kql') }
  { name: 'handler-restarts', severity: 'wake', period: 'PT30M', every: 'PT5M', query: loadTextContent('handler-restarts.kql') }
  { name: 'growing-lag', severity: 'tell', period: 'PT30M', every: 'PT15M', query: loadTextContent('growing-lag.kql') }
  { name: 'poison', severity: 'tell', period: 'PT15M', every: 'PT15M', query: loadTextContent('poison.kql') }
  { name: 'open-findings', severity: 'tell', period: 'PT30M', every: 'PT30M', query: loadTextContent('open-findings.kql') }
  { name: 'dead-letters', severity: 'tell', period: 'PT15M', every: 'PT15M', query: loadTextContent('dead-letters.kql') }
  { name: 'mistakes', severity: 'tell', period: 'PT1H', every: 'PT1H', query: loadTextContent('mistakes.kql') }
]

resource alerts 'Microsoft.Insights/scheduledQueryRules@2022-06-15' = [for rule in rules: {
  name: '${prefix}-${rule.name}'
  location: location
  properties: {
    description: 'deploy/alerts/${rule.name}.kql: its header names the section of docs/runbook.md'
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
